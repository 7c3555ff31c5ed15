"""Pages in Prometheus' text formats: against prometheus_client's own parser, and what that one would lose."""

import math
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from exporters.sources.prometheus_text import MAX_LINE, MOST_LABELS, parse

values = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@given(st.lists(st.tuples(texts, values), max_size=8, unique_by=lambda pair: pair[0]), st.integers(0, 1000))
def test_a_page_that_prometheus_client_writes_is_read_as_it_was_meant(labelled: list[tuple[str, float]], count: int) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("depth", "Depth\nin metres", ["where"], registry=registry)
    for label, value in labelled:
        gauge.labels(label).set(value)
    Counter("done", "Done", registry=registry).inc(count)
    Histogram("time", "Time", registry=registry, buckets=(0.5, 1)).observe(0.7)
    wanted = {(s.name, frozenset(s.labels.items())): s.value for family in registry.collect() for s in family.samples}
    for text in (generate_latest(registry).decode(), openmetrics.generate_latest(registry).decode()):
        page = parse(text)
        assert page.rejected == 0
        found = {(s.name, frozenset(s.labels)): s.value for s in page.samples}
        assert {k: v for k, v in found.items() if not k[0].endswith("_created")} == {
            k: v for k, v in wanted.items() if not k[0].endswith("_created")
        }


@given(st.text() | st.binary().map(lambda b: b.decode("utf-8", "backslashreplace")))
@example("a{" + 'b="c",' * 5000 + "} 1")
@example('a{b="' + "\\" * 20_000)
@example("{" * 10_000)
def test_any_text_gives_samples_or_counted_refusals(text: str) -> None:
    page = parse(text)
    lines = [line for line in (one.strip(" \t\r") for one in text.split("\n")) if line and line[0] != "#"]
    assert len(page.samples) + page.rejected == len(lines)


@pytest.mark.parametrize(
    "line",
    [
        'exp{job="exp "70B"\\u2028x"} 1',
        "a{b=1} 1",
        'a{b="1"',
        "a",
        "1 2",
        "a 1_000",
        "a 0x10",
        "a 1 2 3",
        'a{b="1",b="2"} 1',
        'a{"x","y"} 1',
        "a " + "1" * MAX_LINE,
        "a{" + ",".join(f'l{i}="x"' for i in range(MOST_LABELS + 1)) + "} 1",
    ],
)
def test_a_bad_line_costs_itself_and_no_other(line: str) -> None:
    page = parse(f"before 1\n{line}\nafter 2\n")
    assert ([s.name for s in page.samples], page.rejected) == (["before", "after"], 1)


def test_escapes_names_in_quotes_times_and_exemplars_are_read() -> None:
    page = parse('a{b="x\\\\y\\n\\"z\\"}",} 1.5 1764504000000\n{"my.name",c="d"} 2\nh_bucket{le="+Inf"} 3 # {trace="t"} 0.5\n')
    a, named, bucket = page.samples
    assert (a.labels, a.value, a.at) == ((("b", 'x\\y\n"z"}'),), 1.5, 1_764_504_000.0)
    assert (named.name, named.labels, named.value) == ("my.name", (("c", "d"),), 2.0)
    assert (bucket.labels, bucket.value, bucket.at) == ((("le", "+Inf"),), 3.0, None)


def test_open_metrics_times_are_seconds() -> None:
    (sample,) = parse("a 1 1764504000.25\n# EOF\n").samples
    assert sample.at == 1_764_504_000.25


def test_stale_marks_and_infinities_are_numbers_here() -> None:
    page = parse("a NaN\nb -Inf\nc +Inf\n")
    assert math.isnan(page.samples[0].value) and [s.value for s in page.samples[1:]] == [-math.inf, math.inf]


def test_the_names_of_counters_stay_as_they_are_written() -> None:
    page = parse("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter\nDCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION 7\n")
    assert page.samples[0].name == "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" and re.fullmatch("counter", page.types[page.samples[0].name])
