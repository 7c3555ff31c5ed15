"""How every node is, with the reason: a pure answer from who was heard, which incidents are open and what is held back.

Unknown is never ok. A node whose agent is silent while its launcher speaks has lost its telemetry, which says nothing about its
work; one that nobody heard for a day is gone, unless something that is still open is about it.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from pipeline.catalog.faults import TELEMETRY_LOST
from pipeline.catalog.layers import Severity, gravity
from pipeline.hold_records import HoldTransition, MaintenanceTransition
from pipeline.queries.collectors_failing import FailingCollector
from pipeline.queries.launchers_now import LauncherNow
from pipeline.queries.mounts_fullest import FullestMount
from pipeline.queries.nodes_heard import HeardNode
from pipeline.queries.nodes_known import KnownNode
from pipeline.queries.nodes_now import NodeNow
from pipeline.queries.run_states import RunState
from pipeline.records import FindingTransition, IncidentTransition
from pipeline.settings import Settings
from pipeline.spans import long_span
from pipeline.vitals import AGENT, LAUNCHER, RESOLVED, patience

GONE_AFTER: Final = timedelta(days=1)  # without a word


class NodeState(StrEnum):
    """How a node is, worst first. Degraded: work on it goes on all the same. Lost: only its telemetry. Gone: it seems to be taken out."""

    FAILED = "failed"
    UNKNOWN = "unknown"
    LOST = "telemetry lost"
    DEGRADED = "degraded"
    OK = "ok"
    GONE = "gone"


_WORST_FIRST: Final = {state: place for place, state in enumerate(NodeState)}


@dataclass(frozen=True, slots=True)
class Signs:
    """Of one node: when its agent and a launcher on it were last heard, and what its agent cannot read though it could before."""

    agent_at: datetime | None = None
    launcher_at: datetime | None = None
    unreadable: tuple[str, ...] = ()

    @property
    def heard_at(self) -> datetime | None:
        """When anything on the node was last heard."""
        return max((at for at in (self.agent_at, self.launcher_at) if at), default=None)


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """The state of a node, and what it rests on."""

    state: NodeState
    reason: str


def judge_node(signs: Signs, incidents: Sequence[IncidentTransition], settings: Settings, now: datetime) -> NodeVerdict:
    """The state of a node with these `incidents` open on it, worst first. The worst thing known decides."""
    if incidents and incidents[0].severity in (Severity.CRITICAL, Severity.ERROR):
        return NodeVerdict(NodeState.FAILED, _titles(incidents))
    if not _within(signs.agent_at, patience(AGENT, settings), now):
        if _within(signs.launcher_at, patience(LAUNCHER, settings), now):
            return NodeVerdict(NodeState.LOST, f"{_agents_silence(signs, now)}; its launcher still speaks, so the run may be well")
        return _silent(signs, incidents, now)
    if any(i.fault == TELEMETRY_LOST.name for i in incidents):
        return NodeVerdict(NodeState.LOST, _titles(incidents))
    if incidents:
        return NodeVerdict(NodeState.DEGRADED, _titles(incidents))
    if signs.unreadable:
        return NodeVerdict(NodeState.DEGRADED, f"its agent can no longer read: {', '.join(signs.unreadable)}")
    return NodeVerdict(NodeState.OK, "no incident is open and its agent is heard")


def _silent(signs: Signs, incidents: Sequence[IncidentTransition], now: datetime) -> NodeVerdict:
    if signs.heard_at and now - signs.heard_at <= GONE_AFTER:
        told = f"silent for {long_span((now - signs.heard_at).total_seconds())}: neither its agent nor a launcher is heard"
        return NodeVerdict(NodeState.UNKNOWN, f"{_titles(incidents)}; {told}" if incidents else told)
    if incidents:
        return NodeVerdict(NodeState.UNKNOWN, f"{_titles(incidents)}; not heard for over a day")
    return NodeVerdict(NodeState.GONE, "not heard for over a day: it seems to be taken out")


def _agents_silence(signs: Signs, now: datetime) -> str:
    if signs.agent_at is None:
        return "no agent speaks for this node, so a lost node would not be noticed"
    return f"its agent is silent for {long_span((now - signs.agent_at).total_seconds())}"


def _titles(incidents: Sequence[IncidentTransition]) -> str:
    more = len(incidents) - 1
    return incidents[0].title + (f"; {more} more {'incident' if more == 1 else 'incidents'}" if more else "")


def _within(at: datetime | None, seconds: float, now: datetime) -> bool:
    return at is not None and (now - at).total_seconds() <= seconds


# --- what is held back -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeldBack:
    """A hold that is about a node. `whole`: about all of it, not only some of what may happen there."""

    hold: HoldTransition
    whole: bool

    @property
    def maintenance(self) -> bool:
        """Whether somebody works on the node; else only pages are held back."""
        return isinstance(self.hold, MaintenanceTransition)


def holds_on(node: str, runs: Collection[str], holds: Iterable[HoldTransition]) -> list[HeldBack]:
    """Those of `holds` that name `node`, or one of the `runs` on it; whether they hold now is theirs to say."""
    found = []
    for hold in holds:
        parts = dict(part.split("=", 1) for part in hold.matcher.split(",") if "=" in part)
        named = parts.get("node", "").lower() == node if "node" in parts else parts.get("run") in runs
        if named and parts.get("run") in (None, *runs):
            found.append(HeldBack(hold, whole=parts.keys() == {"node"}))
    return found


# --- all of them -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Facts:
    """What was read about the fleet, as the queries give it; `holds` are silences and maintenance windows."""

    known: Sequence[KnownNode] = ()
    now: Sequence[NodeNow] = ()
    heard: Sequence[HeardNode] = ()
    mounts: Sequence[FullestMount] = ()
    launchers: Sequence[LauncherNow] = ()
    failing: Sequence[FailingCollector] = ()
    runs: Sequence[RunState] = ()
    incidents: Sequence[IncidentTransition] = ()
    findings: Sequence[FindingTransition] = ()
    holds: Sequence[HoldTransition] = ()


@dataclass(frozen=True, slots=True)
class RunHere:
    """A run in progress with a launcher on the node; `ranks` of it were alive here."""

    run: str
    attempt: str
    ranks: int


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is now. `readings` and `fullest` are None where they are not known, or no longer true."""

    name: str
    state: NodeState
    reason: str
    signs: Signs
    gpus: int = 0
    readings: NodeNow | None = None
    fullest: FullestMount | None = None
    runs: tuple[RunHere, ...] = ()
    incidents: tuple[IncidentTransition, ...] = ()
    held: tuple[HeldBack, ...] = field(default=())

    def holding(self, now: datetime) -> list[HeldBack]:
        """What is held back at `now`, maintenance first."""
        return sorted((h for h in self.held if h.hold.holds(now)), key=lambda h: not h.maintenance)


class _Placed(Protocol):
    @property
    def node(self) -> str: ...


P = TypeVar("P", bound=_Placed)


def silent(facts: Facts) -> list[str]:
    """The nodes of the inventory that were not heard lately: of these it must be asked when they were."""
    spoken = {row.node for row in facts.now}
    return [row.node for row in facts.known if row.node not in spoken]


def fleet(facts: Facts, settings: Settings, now: datetime) -> list[Node]:
    """Every node that anything is known of, worst first; of the same state by what is open on them, then by name."""
    readings = {row.node: row for row in facts.now}
    agents = {row.node: row.at for row in facts.heard} | {row.node: row.at for row in facts.now}
    launchers = _by(facts.launchers)
    mounts = {row.node: row for row in facts.mounts}
    gpus = {row.node: row.gpus for row in facts.known}
    unreadable = _by(row for row in facts.failing if row.ok_at)  # what it could never read is not there
    going = {run.run: run for run in facts.runs if run.state == "started"}
    troubles = _troubles(facts.incidents, facts.findings)
    nodes = []
    for name in {*agents, *gpus, *launchers, *troubles}:
        spoken = launchers.get(name, ())
        signs = Signs(agents.get(name), max((s.at for s in spoken), default=None), tuple(c.collector for c in unreadable.get(name, ())))
        incidents = troubles.get(name, ())
        verdict = judge_node(signs, incidents, settings, now)
        runs = _runs(spoken, going, settings, now)
        fresh = _within(signs.agent_at, patience(AGENT, settings), now)
        nodes.append(
            Node(
                name=name,
                state=verdict.state,
                reason=verdict.reason,
                signs=signs,
                gpus=gpus.get(name, 0),
                readings=readings.get(name) if fresh else None,
                fullest=mounts.get(name) if fresh else None,
                runs=runs,
                incidents=tuple(incidents),
                held=tuple(holds_on(name, {r.run for r in runs}, facts.holds)),
            )
        )
    return sorted(nodes, key=_order)


def counts(nodes: Iterable[Node]) -> dict[NodeState, int]:
    """How many nodes are in each state, worst first; a state that no node is in is there with none."""
    found = dict.fromkeys(NodeState, 0)
    for node in nodes:
        found[node.state] += 1
    return found


def _by(rows: Iterable[P]) -> Mapping[str, Sequence[P]]:
    found: dict[str, list[P]] = defaultdict(list)
    for row in rows:
        found[row.node].append(row)
    return found


def _runs(spoken: Sequence[LauncherNow], going: Mapping[str, RunState], settings: Settings, now: datetime) -> tuple[RunHere, ...]:
    """The runs in progress here: whose launcher is heard, or was part of the attempt that goes on."""
    return tuple(
        RunHere(s.run, s.attempt, s.alive)
        for s in spoken
        if s.run in going and (_within(s.at, patience(LAUNCHER, settings), now) or s.attempt in ("", going[s.run].attempt))
    )


def _troubles(incidents: Iterable[IncidentTransition], findings: Iterable[FindingTransition]) -> dict[str, list[IncidentTransition]]:
    """The open incidents of each node, worst and oldest first: those that name it, and those with an open finding on it."""
    still = {i.incident: i for i in incidents if i.new_state != RESOLVED}
    places = {(i.node, i.incident) for i in still.values()} | {(f.node, f.incident) for f in findings if f.incident in still}
    found: dict[str, list[IncidentTransition]] = {}
    for node, incident in places:
        if node:
            found.setdefault(node, []).append(still[incident])
    return {
        node: sorted(some, key=lambda i: (gravity(i.severity), i.onset or i.detected_at or i.at, i.incident))
        for node, some in found.items()
    }


def _order(node: Node) -> tuple[int, int, list[str | int]]:
    worst = gravity(node.incidents[0].severity if node.incidents else "")
    return _WORST_FIRST[node.state], worst, natural(node.name)


def natural(name: str) -> list[str | int]:
    """What puts gpu-2 before gpu-10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
