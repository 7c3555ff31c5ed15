"""The figures job with a real store, against values worked out by hand."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from pipeline.clock import utcnow
from pipeline.errors import StoreError, StoreUnavailable
from pipeline.queries.last_resolved import last_resolved
from pipeline.queries.repairs import Repair, repairs
from pipeline.queries.slo_latest import slo_latest
from pipeline.records import GOODPUT, MTTR, IncidentTransition, LedgerEntry, SloResult
from pipeline.store import Store
from slo.figures_job import WINDOWS, FiguresJob

DAY, WEEK = WINDOWS
NOW = utcnow().replace(second=20, microsecond=0)  # old rows would be dropped


def back(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


Incident = Callable[..., None]


@pytest.fixture
def incident(store: Store) -> Incident:
    """Writes an incident that began `ago` seconds before NOW, and was resolved `length` seconds later (None: is open)."""

    def write(name: str, ago: float, length: float | None = None, caught_up: float | None = None) -> None:
        opened = IncidentTransition(
            old_state="", new_state="open", reason="", actor="t", at=back(ago - 1), incident=name, key=name, fault="rank_crash",
            layer="framework", severity="critical", title=name, onset=back(ago), detected_at=back(ago - 1),
        )  # fmt: skip
        rows = [opened]
        if length is not None:
            end = back(ago - length)
            found = None if caught_up is None else back(ago - caught_up)
            rows.append(replace(opened, old_state="open", new_state="resolved", at=end, resolved_at=end, caught_up_at=found))
        store.insert(rows, token=name)

    return write


def entry(ago: float, until: float, category: str, generation: int = 1) -> LedgerEntry:
    return LedgerEntry(run="r", attempt="r-1", generation=generation, rank=0, started_at=back(ago), ended_at=back(until), category=category)


def latest(store: Store) -> dict[tuple[str, int], SloResult]:
    return {(r.figure, r.window_seconds): r for r in slo_latest(store, back(3600))}


def count(store: Store) -> Any:
    return store.query("SELECT count() AS n FROM slo_results")[0]["n"]


def test_time_to_repair_is_over_the_incidents_resolved_in_the_window_and_open_ones_are_counted_apart(
    store: Store, incident: Incident
) -> None:
    """10 and 30 s: mean and median 20, p90 (nearest rank) 30. Two days ago one took 80 s: only the week has it. One is open."""
    incident("a", 600, 10, caught_up=9)
    incident("b", 500, 30, caught_up=27)
    incident("c", 2 * DAY, 80)
    incident("d", 60)
    FiguresJob(store, lambda: NOW).run_pass(None)
    found = latest(store)
    assert found[MTTR, DAY] == SloResult(
        figure=MTTR, window_seconds=DAY, at=NOW, started_at=back(DAY), ended_at=NOW,
        value=20.0, median=20.0, p90=30.0, catch_up=18.0, count=2, open=1,
    )  # fmt: skip
    week = found[MTTR, WEEK]
    assert (week.value, week.median, week.p90, week.catch_up, week.count, week.open) == (40.0, 30.0, 80.0, 18.0, 3, 1)


def test_goodput_is_the_productive_part_of_what_the_ledger_covers_in_the_window(store: Store) -> None:
    """75 of 100 GPU-s in the day, of the newest generation. Of what crosses the day's edge only 20 s are in it, in the week all 1000."""
    store.insert([entry(100, 0, "detect"), entry(DAY + 980, DAY - 20, "init")], token="old")
    store.insert([entry(100, 25, "productive", 2), entry(25, 20, "detect", 2), entry(DAY + 980, DAY - 20, "init", 2)], token="new")
    FiguresJob(store, lambda: NOW).run_pass(None)
    found = latest(store)
    assert (found[GOODPUT, DAY].value, found[GOODPUT, DAY].count) == (75 / 100, 100)
    assert (found[GOODPUT, WEEK].value, found[GOODPUT, WEEK].count) == (75 / 1080, 1080)


def test_of_nothing_there_is_no_figure_rather_than_zero(store: Store) -> None:
    FiguresJob(store, lambda: NOW).run_pass(None)
    found = latest(store)
    assert found.keys() == {(f, w) for f in (GOODPUT, MTTR) for w in WINDOWS}
    assert {(r.value, r.median, r.p90, r.catch_up, r.count, r.open) for r in found.values()} == {(None, None, None, None, 0, 0)}


def test_a_pass_of_the_same_minute_is_stored_once_until_an_incident_is_resolved(store: Store, incident: Incident) -> None:
    FiguresJob(store, lambda: NOW).run_pass(None)
    FiguresJob(store, lambda: NOW + timedelta(seconds=30)).run_pass(None)
    assert count(store) == 4
    incident("a", 60, 40)
    later = FiguresJob(store, lambda: NOW + timedelta(seconds=32))
    later.run_pass(last_resolved(store))
    assert (count(store), latest(store)[MTTR, DAY].value) == (8, 40.0)
    FiguresJob(store, lambda: NOW + timedelta(seconds=60)).run_pass(last_resolved(store))
    assert count(store) == 12


def test_the_job_writes_at_once_then_rests_but_for_a_resolved_incident(store: Store, incident: Incident) -> None:
    times = iter([NOW, NOW + timedelta(seconds=2)])
    job = FiguresJob(store, lambda: next(times))
    job.tick()
    assert count(store) == 4
    job.tick()
    incident("a", 60)
    job.tick()
    assert count(store) == 4, "an incident that opens is no news"
    incident("b", 60, 40)
    job.tick()
    assert (count(store), latest(store)[MTTR, DAY].median) == (8, 40.0)


def test_a_repair_without_an_onset_counts_from_its_detection_or_from_its_opening(store: Store) -> None:
    """The last transition decides: also where it says None again."""
    opened = IncidentTransition(
        old_state="", new_state="open", reason="", actor="t", at=back(50), incident="i", key="i", fault="f", layer="l",
        severity="warning", title="t", onset=back(55), recovered_at=back(51),
    )  # fmt: skip
    moved = replace(opened, at=back(40), onset=None, recovered_at=None)
    store.insert([opened, moved, replace(opened, incident="j", onset=None, detected_at=back(52))], token="t")
    assert repairs(store, back(DAY)) == [Repair("j", back(52), recovered=back(51)), Repair("i", back(50))]


class Failing:
    """A store that answers when an incident was last resolved, fails at everything else, and counts how often."""

    def __init__(self, error: StoreError) -> None:
        self.error, self.failed = error, 0

    def query(self, sql: str, *_: Any) -> list[dict[str, Any]]:
        if "LIMIT 1" in sql:
            return []
        self.failed += 1
        raise self.error


@pytest.mark.parametrize(("error", "tries"), [(StoreUnavailable("gone"), 3), (StoreError("no such column"), 1)])
def test_a_failure_is_tried_again_at_once_only_where_that_may_help(error: StoreError, tries: int) -> None:
    store: Any = Failing(error)
    job = FiguresJob(store, lambda: NOW)
    for _ in range(3):
        with suppress(StoreError):
            job.tick()
    assert store.failed == tries
