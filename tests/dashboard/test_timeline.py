"""A timeline of many findings stays one that a person can read."""

from datetime import UTC, datetime, timedelta
from typing import Any

from dashboard.timeline import moments, of_findings
from pipeline.records import FindingTransition

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


def finding(number: int, seconds: float = 0.0, **changes: Any) -> FindingTransition:
    usual = {"old_state": "", "new_state": "open", "reason": f"/data has not answered for {number} s", "actor": "fault_rule"}
    usual |= {"finding": f"f{number}", "key": f"k{number}", "detector": "fault_rule", "fault": "mount_hung", "layer": "storage"}
    usual |= {"severity": "critical", "node": f"gpu-{number:03d}", "device": "/data"}
    return FindingTransition(**(usual | changes), at=T0 + timedelta(seconds=seconds))


def test_five_hundred_findings_of_one_second_are_told_once_with_the_first_of_them_named() -> None:
    opened = [finding(n, n / 1000) for n in range(500)]
    over = [finding(n, 60, new_state="cleared", reason="/data answers again") for n in range(500)]
    told = of_findings([*opened, *over])
    assert [(m.at, m.title) for m in told] == [
        (T0, "Detected by fault_rule at 500 places: A file system does not answer"),
        (T0 + timedelta(seconds=60), "fault_rule is cleared at 500 places"),
    ]
    assert told[0].detail == "the first: /data has not answered for 0 s"
    assert next(iter(told[0].facts.items())) == ("/data on gpu-000", "/data has not answered for 0 s")
    assert (len(told[0].facts), told[0].facts["and"]) == (21, "480 more")
    assert len(str(moments(told, T0))) < 10_000


def test_a_few_findings_and_those_of_other_seconds_or_faults_are_told_one_by_one() -> None:
    assert len(of_findings([finding(n) for n in range(3)])) == 3
    assert len(of_findings([finding(n, n) for n in range(6)])) == 6
    mixed = [finding(n) for n in range(4)] + [finding(n, fault="host_oom_kill") for n in range(4, 6)]
    assert [m.title for m in of_findings(mixed)][1:] == ["Detected by fault_rule: The kernel killed a process for want of memory"] * 2
