"""What a drill tells of an incident: each milestone once, in the words of when it was reached."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.catalog.faults import RANK_CRASH
from pipeline.records import IncidentTransition
from surefoot.drill.pager import Pager, Received
from surefoot.drill.plan import Located, Truth
from surefoot.drill.stack import free_ports, merged
from surefoot.drill.watch import Watch, milestones

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


OPENED = IncidentTransition(
    old_state="",
    new_state="open",
    reason="rank 1 was killed by SIGKILL",
    actor="leader",
    at=at(1),
    incident="i",
    key="k",
    fault="rank_crash",
    layer="framework",
    severity="critical",
    title="A rank's process died",
    node="n",
    rank=1,
    detected_at=at(1),
    located_at=at(1),
)


def told(*transitions: IncidentTransition) -> list[tuple[float, str, str]]:
    return [((when - T0).total_seconds(), what, text) for when, what, text in milestones(transitions)]


def test_a_cause_that_is_found_after_the_place_is_told_beside_what_was_known_first() -> None:
    caused = replace(OPENED, at=at(2), fault="host_oom_kill", layer="kernel", title="The kernel killed a process", reason="1 process")
    acted = replace(caused, at=at(3), new_state="mitigating", reason="restart_run issued", acted_at=at(3))
    back = replace(acted, at=at(8), new_state="recovering", recovered_at=at(7.5))
    over = replace(back, at=at(9), new_state="resolved", reason="recovered", resolved_at=at(9))
    assert told(OPENED, caused, acted, back, over) == [
        (1, "detected", "A rank's process died"),
        (1, "located", "framework, node n, rank 1"),
        (3, "acted", "restart_run issued"),
        (7.5, "restarted", "first step completed by the new attempt"),
        (9, "resolved", ""),
        (2, "explained", "The kernel killed a process"),
    ]


def test_a_fault_that_ends_without_an_action_says_by_what() -> None:
    full = replace(OPENED, fault="filesystem_full", layer="storage", title="A file system is full: /data on n", device="/data", rank=None)
    over = replace(full, at=at(9), new_state="resolved", reason="/data has 6 GB free", resolved_at=at(9))
    assert told(full, over) == [
        (1, "detected", "A file system is full: /data on n"),
        (1, "located", "storage, node n, /data"),
        (9, "resolved", "/data has 6 GB free"),
    ]


def test_a_place_that_is_found_later_is_told_as_located_and_not_as_explained() -> None:
    hung = replace(OPENED, fault="collective_hang", layer="communication", rank=None, located_at=None, title="No rank makes progress")
    stopped = replace(hung, at=at(2), fault="rank_stopped", layer="framework", rank=1, located_at=at(2))
    assert told(hung, stopped) == [(1, "detected", "No rank makes progress"), (2, "located", "framework, node n, rank 1")]


class Rows:
    """A store that holds an incident's transitions."""

    def __init__(self, *transitions: IncidentTransition) -> None:
        self.transitions = list(transitions)

    def read(self, *_: object) -> list[IncidentTransition]:
        return self.transitions


def test_what_is_heard_of_late_is_still_told_in_the_order_of_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolved, and paged so, is known at once; that the run has caught up comes with its agent's next message."""
    said: list[str] = []
    clock = [at(8.2)]
    monkeypatch.setattr("surefoot.drill.watch.utcnow", lambda: clock[0])
    back = replace(OPENED, at=at(3), new_state="recovering", recovered_at=at(3))
    over = replace(back, at=at(8), new_state="resolved", reason="recovered", resolved_at=at(8))
    rows = Rows(OPENED, back, over)
    pager = Pager()
    pager.received.append(Received(at(8.1), "resolve", "i", {"payload": {"summary": "Resolved"}}))
    truth = Truth(T0, "a", Located(RANK_CRASH.layer, "n", 1), "forward", RANK_CRASH)
    watch = Watch(rows, pager, truth, "run", said.append, lambda seconds: None)  # type: ignore[arg-type]
    monkeypatch.setattr("surefoot.drill.watch.run_incidents", lambda store, run: rows.transitions if run else [])
    watch.look()
    assert [line.split("s  ")[1].split("  ")[0] for line in said] == ["detected", "located", "restarted"]
    rows.transitions.append(replace(over, at=at(8.4), caught_up_at=at(7.7)))
    clock[0] = at(10.3)
    watch.look()
    assert [line.split("s  ")[1].split("  ")[0] for line in said[3:]] == ["caught up", "resolved", "paged (resolve)"]
    pager.close()


def test_a_drills_settings_leave_what_they_do_not_speak_of() -> None:
    own = {"agent": {"port": 7}, "cluster": "drill"}
    assert merged(own, {"agent": {"interval": 1.0}, "receivers": []}) == {
        "agent": {"port": 7, "interval": 1.0},
        "cluster": "drill",
        "receivers": [],
    }


def test_a_drills_ports_are_not_given_to_a_connection_before_it_listens_on_them() -> None:
    first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    if first <= 10_000:
        pytest.skip("here connections get any port")
    ports = free_ports(50)
    assert len(set(ports)) == 50
    assert not [port for port in ports if first <= port <= last or port < 1024]
