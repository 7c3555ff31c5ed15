"""Lists of node names as schedulers write them: `gpu-[001-050,060]`, `r1-n[1-4],login`. Pure; names are case-folded."""

import re
from collections.abc import Iterable
from typing import Final

from pipeline.errors import InputError

MOST: Final = 100_000  # names that one list may stand for
_PART: Final = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
_NAME: Final = re.compile(r"[a-z0-9_.:-]+")
_RANGE: Final = re.compile(r"(\d+)(?:-(\d+))?")
_NUMBER: Final = re.compile(r"([^.]*?)(\d+)([^.\d]*(?:\..*)?)")  # the last number before the first dot


def expand(text: str) -> list[str]:
    """The names that `text` stands for, each once, in its order. Raises InputError, one line, for what is no such list."""
    parts = _PART.findall(text)
    if ",".join(parts) != text or not parts:
        raise InputError(f"{text!r} is no list of nodes; write names with commas between them, and ranges as gpu-[001-050]")
    found: dict[str, None] = {}
    for part in parts:
        for name in _names(part.strip().lower(), text):
            found[name] = None
            if len(found) > MOST:
                raise InputError(f"{text!r} stands for more than {MOST:,} nodes")
    return list(found)


def _names(part: str, text: str) -> Iterable[str]:
    """The names of one part: what stands in brackets is a list of numbers, and their zeros count."""
    before, bracket, rest = part.partition("[")
    if not bracket:
        if not _NAME.fullmatch(part):
            raise InputError(f"{part!r} in {text!r} is no name of a node")
        yield part
        return
    numbers, _, after = rest.partition("]")
    for piece in numbers.split(","):
        match = _RANGE.fullmatch(piece.strip())
        if match is None or len(match[1]) > 9 or len(match[2] or "") > 9:
            raise InputError(f"[{numbers}] in {text!r} is no list of numbers; write it as [001-050,060]")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise InputError(f"{piece.strip()} in {text!r} runs backwards")
        for number in range(first, last + 1):
            yield from _names(f"{before}{number:0{len(match[1])}d}{after}", text)


def fold(names: Iterable[str]) -> str:
    """A list that stands for `names`, as short as numbers in a row make it."""
    runs: dict[tuple[str, str, int], list[int]] = {}
    single: list[str] = []
    for name in sorted(set(names)):
        match = _NUMBER.fullmatch(name)
        if match is None or len(match[2]) > 9:
            single.append(name)
        else:
            runs.setdefault((match[1], match[3], len(match[2])), []).append(int(match[2]))
    folded = [_folded(*key, sorted(numbers)) for key, numbers in runs.items()]
    return ",".join(sorted([*single, *folded]))


def _folded(before: str, after: str, width: int, numbers: list[int]) -> str:
    rows: list[list[int]] = []
    for number in numbers:
        if rows and number == rows[-1][-1] + 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    shown = [f"{row[0]:0{width}d}" + (f"-{row[-1]:0{width}d}" if len(row) > 1 else "") for row in rows]
    return f"{before}{shown[0]}{after}" if len(numbers) == 1 else f"{before}[{','.join(shown)}]{after}"
