"""Is everything fine? Unknown is never ok."""

from datetime import UTC, datetime, timedelta

from pipeline.queries.signs_of_life import LastSign
from pipeline.records import IncidentTransition
from pipeline.settings import Settings
from pipeline.vitals import Health, Sign, judge_signs, overall

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
SETTINGS = Settings()  # heartbeat 10 s; an agent reads every 10 s, so three missed readings are 30 s


def heard(component: str, age: float, node: str = "", run: str = "") -> LastSign:
    return LastSign(component, node, run, NOW - timedelta(seconds=age), "")


def incident(severity: str, state: str = "open") -> IncidentTransition:
    return IncidentTransition(
        old_state="",
        new_state=state,
        reason="",
        actor="leader",
        at=NOW,
        incident="i",
        key="k",
        fault="f",
        layer="unknown",
        severity=severity,
        title="It burns",
    )


def all_well() -> list[Sign]:
    return judge_signs([heard("jobs", 1), heard("ingest", 1), heard("agent", 9, "n1")], [], SETTINGS, NOW)


def test_all_heard_and_no_incident_is_ok() -> None:
    assert [s.health for s in all_well()] == [Health.OK] * 3
    assert overall([], all_well()).health is Health.OK


def test_parts_that_were_never_heard_are_unknown_by_name() -> None:
    signs = judge_signs([], ["run-a"], SETTINGS, NOW)
    assert {(s.component, s.run, s.at, s.health) for s in signs} == {
        ("agent", "", None, Health.UNKNOWN),
        ("ingest", "", None, Health.UNKNOWN),
        ("jobs", "", None, Health.UNKNOWN),
        ("launcher", "run-a", None, Health.UNKNOWN),
    }
    assert overall([], signs).health is Health.UNKNOWN


def test_silence_makes_unknown_only_after_the_patience_of_the_part() -> None:
    signs = judge_signs([heard("jobs", 10), heard("ingest", 10.1), heard("agent", 30, "n1"), heard("agent", 30.1, "n2")], [], SETTINGS, NOW)
    assert {(s.component, s.node): s.health for s in signs} == {
        ("jobs", ""): Health.OK,
        ("ingest", ""): Health.UNKNOWN,
        ("agent", "n1"): Health.OK,
        ("agent", "n2"): Health.UNKNOWN,
    }
    assert overall([], signs).reason == "the agent on n2 has been silent for more than 30 s"


def test_a_launcher_of_a_run_that_is_over_is_not_missed() -> None:
    signs = judge_signs([heard("launcher", 500, "n1", "old"), heard("launcher", 1, "n1", "new")], ["new"], SETTINGS, NOW)
    assert [s.run for s in signs if s.component == "launcher"] == ["new"]


def test_the_worst_thing_known_decides() -> None:
    silent = judge_signs([], [], SETTINGS, NOW)
    assert overall([incident("critical")], silent).health is Health.FAILED
    assert overall([incident("warning")], silent).health is Health.UNKNOWN
    assert overall([incident("warning")], all_well()).health is Health.DEGRADED
    assert overall([incident("critical", "resolved")], all_well()).health is Health.OK
    assert overall([incident("critical")], silent).reason == "It burns"
