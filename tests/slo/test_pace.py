"""The healthy step, and frames, against cases worked out by hand."""

from datetime import UTC, datetime, timedelta

from pipeline.clock import to_micros
from pipeline.queries.run_first_steps import StepRange
from pipeline.records import AttemptTransition, IncidentTransition, RunTransition
from slo.frame import frame
from slo.history import Attempt, Pace
from slo.outages import base_name
from slo.pace import pace

T0 = datetime(2026, 11, 30, tzinfo=UTC)


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


def run(state: str, second: float, ranks: int = 0) -> RunTransition:
    return RunTransition(old_state="", new_state=state, reason="", actor="", at=at(second), run="r", node="n", ranks=ranks)


def attempt(name: str, state: str, second: float, code: int | None = None) -> AttemptTransition:
    return AttemptTransition(
        old_state="", new_state=state, reason="", actor="", at=at(second), run="r", attempt=name, launch=1, exit_code=code
    )


def incident(second: float, fault: str = "rank_crash", **times: datetime) -> IncidentTransition:
    return IncidentTransition(
        old_state="",
        new_state="open",
        reason="",
        actor="",
        at=at(second),
        incident="i",
        key="k",
        fault=fault,
        layer="framework",
        severity="critical",
        title="",
        run="r",
        attempt="r-1",
        **times,  # type: ignore[arg-type]
    )


def test_the_healthy_step_is_the_mean_of_those_within_three_deviations_of_the_median() -> None:
    """The lower median of the twelve is 102, that of the deviations (0 0 1 1 1 1 2 2 2 2 6 98) 1: up to 105 there are ten, of 1020."""
    work = [100, 101, 102, 103, 104, 100, 101, 102, 103, 104, 108, 200]
    assert pace(work) == Pace(102, 105)


def test_of_fewer_than_ten_steps_nothing_is_said() -> None:
    assert pace([100] * 9) is None
    assert pace([100] * 10) == Pace(100, 100)


def test_a_frame_ends_with_its_run_or_now() -> None:
    assert frame([run("started", 0)], [], [], [], [], 0, at(9)).end == to_micros(at(9))
    ended = frame([run("started", 0), run("failed", 5)], [], [], [], [], 0, at(9))
    assert (ended.end, ended.ended, ended.ranks) == (to_micros(at(5)), True, 1)


def test_an_attempt_begins_when_it_is_started_not_when_it_is_issued() -> None:
    made = frame(
        [run("started", 0)], [attempt("r-1", "issued", 1), attempt("r-1", "starting", 2), attempt("r-2", "issued", 3)], [], [], [], 2, at(9)
    )
    assert made.attempts == (Attempt("r-1", to_micros(at(2))),)


def test_an_inner_restart_shows_by_its_steps_and_ends_with_its_launch() -> None:
    steps = [StepRange("r-1", 0, 0, at(1), at(2), at(3)), StepRange("r-1.1", 0, 0, at(6), at(7), at(7))]
    made = frame([run("started", 0)], [attempt("r-1", "starting", 0), attempt("r-1", "ended", 8, 3)], [], steps, [], 1, at(9))
    assert made.attempts == (Attempt("r-1", to_micros(at(0)), to_micros(at(8)), 3), Attempt("r-1.1", to_micros(at(6)), to_micros(at(8)), 3))
    assert base_name(made, "r-1.1") == "r-1.1"
    assert base_name(made, "r-1.2") == "r-1"


def test_one_launcher_that_failed_makes_the_attempt_failed() -> None:
    transitions = [attempt("r-1", "starting", 0), attempt("r-1", "ended", 5, 1), attempt("r-1", "ended", 6, 0)]
    (only,) = frame([run("started", 0)], transitions, [], [], [], 1, at(9)).attempts
    assert (only.end, only.exit_code) == (to_micros(at(6)), 1)


def test_the_last_word_on_an_incident_counts_and_its_opening_stands_in_for_a_missing_onset() -> None:
    (outage,) = frame([run("started", 0)], [], [incident(3), incident(5, resolved_at=at(5))], [], [], 1, at(9)).outages
    assert (outage.onset, outage.detected, outage.resolved) == (to_micros(at(3)), to_micros(at(3)), to_micros(at(5)))


def test_lost_telemetry_is_no_outage() -> None:
    assert frame([run("started", 0)], [], [incident(3, fault="telemetry_lost")], [], [], 1, at(9)).outages == ()
