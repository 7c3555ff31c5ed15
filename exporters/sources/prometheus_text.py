"""Pages in Prometheus' text format 0.0.4 and in OpenMetrics, read line by line.

A line that is no sample costs itself, never the page (prometheus_client's parser raises at the first one), and names stay as they are
written. Sources: prometheus.io "Exposition formats", OpenMetrics 1.0. Pure; knows no metric names.
"""

import re
from dataclasses import dataclass, field
from typing import Final

MOST_LABELS: Final = 64
MAX_LINE: Final = 16 << 10  # characters
_LINE: Final = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)?[ \t]*(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*\")*)\})?[ \t]*"
    r"(?P<value>[^\s#]+)(?:[ \t]+(?P<at>[^\s#]+))?[ \t]*(?P<exemplar>\#.*)?"
)
_PAIR: Final = re.compile(r'\s*(?:([a-zA-Z_:][\w:]*)|"((?:[^"\\]|\\.)*)")\s*(?:=\s*"((?:[^"\\]|\\.)*)")?\s*(,|$)', re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)", re.I | re.ASCII)
_ESCAPE: Final = re.compile(r"\\(.)", re.S)
_ESCAPED: Final = {"n": "\n", '"': '"', "\\": "\\"}
_TYPES: Final = frozenset("counter gauge histogram gaugehistogram summary stateset info unknown untyped".split())

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sample:
    """A value as it stands on the page. `at` is when it was taken (seconds since 1970), None where the page does not say."""

    name: str
    labels: Labels
    value: float
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The samples in their order, each family's declared type, and how many lines could not be read."""

    samples: list[Sample] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    rejected: int = 0


def parse(text: str) -> Page:
    """What a page says. Raises nothing for any text."""
    page, rejected = Page(), 0
    unit = 1.0 if text.rstrip("\n").endswith("# EOF") else 1e-3  # OpenMetrics writes times in seconds, 0.0.4 in milliseconds
    for line in text.split("\n"):
        line = line.strip(" \t\r")
        if not line:
            continue
        if line[0] == "#":
            _declared(line, page.types)
        elif sample := _sample(line, unit):
            page.samples.append(sample)
        else:
            rejected += 1
    return Page(page.samples, page.types, rejected)


def _declared(line: str, types: dict[str, str]) -> None:
    words = line.split(None, 3)
    if len(words) == 4 and words[1] == "TYPE" and words[3].strip() in _TYPES:
        types[words[2].strip('"')] = words[3].strip()


def _sample(line: str, unit: float) -> Sample | None:
    found = _LINE.fullmatch(line) if len(line) <= MAX_LINE else None
    if found is None:
        return None
    value, at = _number(found["value"]), _number(found["at"]) if found["at"] else None
    named = _labels(found["labels"] or "", found["name"])
    if value is None or named is None or (found["at"] and at is None):
        return None
    return Sample(named[0], named[1], value, None if at is None else at * unit)


def _labels(text: str, name: str | None) -> tuple[str, Labels] | None:
    """The sample's name, which may stand quoted among the labels, and the labels; None where they are malformed."""
    pairs: list[tuple[str, str]] = []
    where = 0
    while where < len(text):
        found = _PAIR.match(text, where)
        if found is None or len(pairs) >= MOST_LABELS:
            return None
        key = found[1] if found[1] is not None else _unescaped(found[2])
        if found[3] is None:
            if name is not None or found[1] is not None:
                return None
            name = key
        else:
            pairs.append((key, _unescaped(found[3])))
        where = found.end()
    return (name, tuple(pairs)) if name and len(dict(pairs)) == len(pairs) else None


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda m: _ESCAPED.get(m[1], m[0]), text) if "\\" in text else text


def _number(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None
