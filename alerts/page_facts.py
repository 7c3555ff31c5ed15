"""What a page tells besides its incident: read when a page is made, which is seldom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from alerts.book import Book
from alerts.detectors.fault_rule import runs_by_node
from alerts.silences import paused
from alerts.snapshot import RunLook, Snapshot
from pipeline import loss
from pipeline.catalog.layers import Category
from pipeline.catalog.rules import halts
from pipeline.queries.incident_cost import incident_cost
from pipeline.queries.run_checkpoints import run_checkpoints
from pipeline.queries.run_world import run_world
from pipeline.records import ActionTransition, FindingTransition, IncidentTransition
from pipeline.settings import ConsoleSettings
from pipeline.store import Store

_CATEGORIES = frozenset(Category)
LEDGER_LATE = timedelta(seconds=5)  # after its detection the ledger knows nothing of an incident for so long


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """`gpus` of the run (None: not known; a CPU rank counts as one), its newest complete checkpoint, what the ledger has so far."""

    console: ConsoleSettings
    findings: Sequence[FindingTransition] = ()
    actions: Sequence[ActionTransition] = ()  # oldest first
    gpus: int | None = None
    began_at: datetime | None = None  # of the run
    checkpoint_at: datetime | None = None
    checkpoint_step: str = ""
    spent: Mapping[Category, float] = field(default_factory=dict)  # GPU-seconds charged to the incident
    paused: str = ""  # why no action is issued at all
    nodes: Sequence[str] = ()  # that the findings are about, also those that are over
    runs: Sequence[str] = ()  # in progress on these nodes, where the incident is no run's


def gather(book: Book, snapshot: Snapshot, incident: IncidentTransition, console: ConsoleSettings, now: datetime) -> Facts:
    """The facts of `incident`. Raises StoreError."""
    known = Facts(
        console=console,
        findings=book.findings_of(incident.incident),
        actions=book.actions_of(incident.incident),
        spent=_spent(book.store, incident, now),
        paused=paused(book.holds.values(), now),
        nodes=book.nodes_of(incident.incident),
    )
    if not incident.run:
        there = runs_by_node(snapshot)
        return replace(known, runs=sorted({run for node in known.nodes for run in there.get(node, ())}))
    run = snapshot.run(incident.run)
    newest = next(iter(run_checkpoints(book.store, [incident.run])), None)
    return replace(
        known,
        gpus=_gpus(snapshot, run, incident) or run_world(book.store, incident.run) or None,
        began_at=run.started_at if run else None,
        checkpoint_at=newest.at if newest else None,
        checkpoint_step=newest.step if newest else "",
    )


def _gpus(snapshot: Snapshot, run: RunLook | None, incident: IncidentTransition) -> int:
    """The ranks of the attempt, as its launcher said or as they were seen, without a question; 0 where neither is known."""
    attempt = run.attempt(incident.attempt) if run else None
    return max(attempt.ranks, len(snapshot.ranks_of(attempt.attempt))) if attempt else 0


def _spent(store: Store, incident: IncidentTransition, now: datetime) -> dict[Category, float]:
    """What the ledger charges to the incident; not asked while it is too new for that, so that its first page goes out at once."""
    if incident.detected_at and now - incident.detected_at < LEDGER_LATE:
        return {}
    return {Category(s.category): s.gpu_seconds for s in incident_cost(store, incident.incident) if s.category in _CATEGORIES}


def stops_work(incident: IncidentTransition) -> bool:
    """Whether the run does no steps because of the incident; of a fault that is only a warning it goes on, as the ledger says too."""
    return halts(incident.fault, incident.attempt)


def idle(incident: IncidentTransition, facts: Facts) -> int | None:
    """GPUs that wait now; None where it is not known how many the run has."""
    if not incident.run or not stops_work(incident) or incident.recovered_at or incident.resolved_at:
        return 0
    return facts.gpus


def idle_seconds(incident: IncidentTransition, facts: Facts, now: datetime) -> float | None:
    """GPU-seconds waited so far, by the clock: GPUs x time from onset to recovery, end or `now`."""
    began = incident.onset or incident.detected_at
    if not incident.run or not stops_work(incident):
        return 0.0
    if facts.gpus is None or began is None:
        return None
    until = incident.recovered_at or incident.resolved_at or now
    return facts.gpus * max(0.0, (until - began).total_seconds())


def at_risk(incident: IncidentTransition, facts: Facts, now: datetime) -> float | None:
    """GPU-seconds of work that no complete checkpoint holds: up to the onset where work has stopped, else up to `now`."""
    until = (incident.onset or now) if stops_work(incident) else now
    since = facts.checkpoint_at or facts.began_at
    if facts.gpus is None or since is None:
        return None
    return loss.work_at_risk(facts.gpus, since, None, until)
