"""How a node is, and why. Unknown is never ok."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pipeline.hold_records import MaintenanceTransition, SilenceTransition
from pipeline.nodes import Facts, Node, NodeState, Signs, counts, fleet, holds_on, judge_node, natural, silent
from pipeline.queries.collectors_failing import FailingCollector
from pipeline.queries.launchers_now import LauncherNow
from pipeline.queries.mounts_fullest import FullestMount
from pipeline.queries.nodes_heard import HeardNode
from pipeline.queries.nodes_known import KnownNode
from pipeline.queries.nodes_now import NodeNow
from pipeline.queries.run_states import RunState
from pipeline.records import FindingTransition, IncidentTransition
from pipeline.settings import Settings

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
SETTINGS = Settings()  # heartbeat 10 s; an agent reads every 10 s, so three missed readings are 30 s


UNWATCHED = "no agent speaks for this node, so a lost node would not be noticed"


def back(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def incident(name: str = "i", severity: str = "critical", node: str = "n1", **more: Any) -> IncidentTransition:
    usual: dict[str, Any] = {"old_state": "", "new_state": "open", "reason": "", "actor": "leader", "at": back(60), "key": name}
    usual |= {"fault": "filesystem_full", "layer": "storage", "title": f"{name} burns"}
    return IncidentTransition(**usual | {"incident": name, "severity": severity, "node": node} | more)


def judged(
    agent: float | None, launcher: float | None, *incidents: IncidentTransition, unreadable: tuple[str, ...] = ()
) -> tuple[str, str]:
    signs = Signs(None if agent is None else back(agent), None if launcher is None else back(launcher), unreadable)
    verdict = judge_node(signs, incidents, SETTINGS, NOW)
    return str(verdict.state), verdict.reason


def test_a_node_is_ok_only_while_its_agent_is_heard_and_nothing_is_open() -> None:
    assert judged(30, None) == ("ok", "no incident is open and its agent is heard")
    assert judged(30, None, unreadable=("mount",)) == ("degraded", "its agent can no longer read: mount")


def test_a_silent_agent_is_lost_telemetry_while_a_launcher_speaks_and_unknown_else() -> None:
    assert judged(31, 10) == ("telemetry lost", "its agent is silent for 31 s; its launcher still speaks, so the run may be well")
    assert judged(None, 3) == ("telemetry lost", f"{UNWATCHED}; its launcher still speaks, so the run may be well")
    assert judged(31, 11) == ("unknown", "silent for 11 s: neither its agent nor a launcher is heard")
    assert judged(200, None) == ("unknown", "silent for 3 min 20 s: neither its agent nor a launcher is heard")


def test_a_node_that_nobody_heard_for_a_day_is_gone_unless_something_is_open_about_it() -> None:
    assert judged(86_400, None)[0] == "unknown"
    assert judged(86_401, None) == ("gone", "not heard for over a day: it seems to be taken out")
    assert judged(None, None)[0] == "gone"
    assert judged(None, None, incident("w", "warning")) == ("unknown", "w burns; not heard for over a day")


def test_the_worst_thing_known_decides() -> None:
    grave, error, warning = incident(), incident("e", "error"), incident("w", "warning")
    lost = incident("t", "warning", fault="telemetry_lost")
    assert judged(None, None, grave, warning) == ("failed", "i burns; 1 more incident")
    assert judged(3, 3, error)[0] == "failed"
    assert judged(3, 3, warning) == ("degraded", "w burns")
    assert judged(50, None, warning) == ("unknown", "w burns; silent for 50 s: neither its agent nor a launcher is heard")
    assert judged(3, 3, lost) == ("telemetry lost", "t burns")  # until its incident is resolved


# --- the fleet -------------------------------------------------------------------------------


def now_of(node: str, ago: float = 3) -> NodeNow:
    return NodeNow(node, back(ago), 8, 64, 48, 0.25, 0.02, 0.0, 0.1)


def run_of(name: str, attempt: str = "r-2", state: str = "started") -> RunState:
    return RunState(name, state, "", back(600), back(600), "n1", "train.py", None, attempt, "running", 2, 4)


def by_name(facts: Facts) -> dict[str, Node]:
    return {n.name: n for n in fleet(facts, SETTINGS, NOW)}


def test_all_that_were_heard_of_are_there_the_worst_first_and_names_by_their_numbers() -> None:
    facts = Facts(
        known=[KnownNode(name, 0) for name in ("gpu-2", "gpu-10", "gpu-1", "away", "left")],
        now=[now_of("gpu-10"), now_of("gpu-2"), now_of("gpu-1")],
        heard=[HeardNode("away", back(500)), HeardNode("gpu-1", back(900))],
        launchers=[LauncherNow("blind", "r", back(2), "r-2", "running", 4)],
        incidents=[incident("w", "warning", "gpu-1"), incident("x", node="never-heard"), incident("y", "error", "gpu-99")],
    )
    assert silent(facts) == ["away", "left"]
    found = fleet(facts, SETTINGS, NOW)
    assert [(n.name, str(n.state)) for n in found] == [
        ("never-heard", "failed"),  # critical before error
        ("gpu-99", "failed"),
        ("away", "unknown"),
        ("blind", "telemetry lost"),
        ("gpu-1", "degraded"),
        ("gpu-2", "ok"),
        ("gpu-10", "ok"),
        ("left", "gone"),
    ]
    assert list(counts(found).values()) == [2, 1, 1, 1, 2, 1] and counts([])[NodeState.FAILED] == 0


def test_an_incident_is_also_of_the_nodes_that_its_open_findings_name() -> None:
    def finding(node: str, of: str) -> FindingTransition:
        return FindingTransition(
            old_state="", new_state="open", reason="", actor="l", at=back(50), finding=node, key="k", detector="d", fault="link_down",
            layer="communication", severity="critical", node=node, incident=of,
        )  # fmt: skip

    switch = incident("switch", node="")
    facts = Facts(
        now=[now_of("n1"), now_of("n2"), now_of("n3")],
        incidents=[switch, incident("over", node="n3", new_state="resolved")],
        findings=[finding("n1", "switch"), finding("n2", "switch"), finding("n3", "over"), finding("", "switch")],
    )
    nodes = by_name(facts)
    assert [nodes[n].incidents for n in ("n1", "n2", "n3")] == [(switch,), (switch,), ()]
    assert set(nodes) == {"n1", "n2", "n3"}


def test_readings_that_are_no_longer_true_are_not_shown() -> None:
    full = FullestMount("n1", "/data", 0.97)
    assert by_name(Facts(now=[now_of("n1", 30)], mounts=[full]))["n1"].readings == now_of("n1", 30)
    old = by_name(Facts(now=[now_of("n1", 31)], mounts=[full]))["n1"]
    assert (old.readings, old.fullest, old.signs.agent_at) == (None, None, back(31))


def test_a_run_is_on_a_node_while_its_launcher_there_is_heard_or_was_part_of_the_attempt_that_goes_on() -> None:
    def launcher(node: str, ago: float, attempt: str, run: str = "r") -> LauncherNow:
        return LauncherNow(node, run, back(ago), attempt, "running", 4)

    facts = Facts(
        launchers=[
            launcher("here", 2, "r-2"),
            launcher("died", 300, "r-2"),
            launcher("left-out", 300, "r-1"),
            launcher("spare", 2, "r-1"),
            launcher("other", 2, "o-1", run="over"),
        ],
        runs=[run_of("r"), run_of("over", "o-1", "finished")],
    )
    nodes = by_name(facts)
    assert {name for name, node in nodes.items() if node.runs} == {"here", "died", "spare"}
    assert (nodes["here"].runs[0].run, nodes["here"].runs[0].ranks) == ("r", 4)


def test_only_what_could_be_read_before_is_missed() -> None:
    failing = [FailingCollector("n1", "mount", back(50)), FailingCollector("n2", "disk", None)]
    nodes = by_name(Facts(now=[now_of("n1"), now_of("n2")], failing=failing))
    assert (nodes["n1"].state, nodes["n2"].state) == (NodeState.DEGRADED, NodeState.OK)


# --- holds -----------------------------------------------------------------------------------


def hold(matcher: str, kind: type = SilenceTransition, start: float = 60) -> Any:
    return kind(
        old_state="", new_state="held", reason="rack move", actor="ann", at=back(60), hold=matcher, matcher=matcher, owner="ann",
        starts_at=back(start), ends_at=back(-3600),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("matcher", "about"),
    [
        ("node=n1", "whole"),
        ("node=n1,fault=rank_crash", "part"),
        ("run=r", "part"),
        ("node=n1,run=r", "part"),
        ("node=n2", None),
        ("node=n1,run=other", None),
        ("run=other", None),
        ("severity=warning", None),
        ("", None),
    ],
)
def test_a_hold_is_about_a_node_that_it_names_or_whose_run_it_names(matcher: str, about: str | None) -> None:
    found = holds_on("n1", {"r"}, [hold(matcher)])
    assert [("whole" if h.whole else "part") for h in found] == ([about] if about else [])


def test_only_what_holds_now_is_shown_maintenance_first() -> None:
    facts = Facts(now=[now_of("n1")], holds=[hold("node=n1"), hold("node=n1", MaintenanceTransition), hold("node=n1", start=-60)])
    assert [h.maintenance for h in by_name(facts)["n1"].holding(NOW)] == [True, False]


def test_names_sort_as_people_count() -> None:
    assert sorted(["r2-n10", "r2-n9", "r10-n1", "vm", "7up", "²"], key=natural) == ["7up", "r2-n9", "r2-n10", "r10-n1", "vm", "²"]
