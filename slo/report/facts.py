"""The facts of a report. GPU time is in GPU-seconds, lengths are seconds, ratios 0 to 1; of nothing there is no figure, but None.

`gather` asks the store, `facts_of` works them out (pure). Everything is cut at the edges of the period, but for how long an
incident took: that is its whole length.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from pipeline.catalog.layers import Category
from pipeline.catalog.rules import halts
from pipeline.clock import to_micros
from pipeline.queries.incidents_named import incidents_named
from pipeline.queries.period_runs import PeriodRun, period_runs
from pipeline.queries.period_spending import PeriodSpending, period_spending
from pipeline.queries.repairs import Repair, repairs
from pipeline.queries.silent_agents import Silence, silent_agents
from pipeline.queries.silent_parts import silent_parts
from pipeline.records import IncidentTransition
from pipeline.store import Store
from slo.figures import INCIDENT_PARTS, Mttr, mttr, productive_share

K = TypeVar("K")

BEATS_KEPT = timedelta(days=2)  # what is known of Surefoot's own parts goes no further back
SILENCE = 60.0  # seconds without a word from one of Surefoot's parts that are told
_INTERVALS = 6  # of an agent's intervals missed before its silence is told

UNEXPLAINED = "unexplained"  # a failure that no incident explains
OVERHEAD = frozenset({Category.INIT, Category.LOAD_CHECKPOINT, Category.COMPILE, Category.CHECKPOINT, Category.EVAL})


@dataclass(frozen=True, slots=True)
class Cause:
    """What took GPU time that was not productive. `name` is a fault of the catalogue (then `incidents` counts), or a ledger category."""

    name: str
    kind: str  # incident, overhead, waiting, unused, unknown
    gpu_seconds: float
    incidents: int = 0


@dataclass(frozen=True, slots=True)
class IncidentFacts:
    """An incident that was open at some time of the period. `seconds` is its whole length, up to the period's end while open."""

    incident: str
    title: str
    fault: str
    severity: str
    run: str
    node: str
    onset: datetime
    resolved: datetime | None
    seconds: float
    gpu_seconds: float | None  # in the period; None where the ledger charges nothing to it


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run's share of the period."""

    run: str
    gpu_seconds: float
    goodput: float | None


@dataclass(frozen=True, slots=True)
class Quiet:
    """A part that was not heard for `seconds` of the period; `since` is set where it is silent at the period's end."""

    name: str
    seconds: float
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """What cannot be said. `not_in_ledger`: GPU-seconds of runs that were up and that the ledger has not (yet) reached."""

    gpu_seconds: float
    share: float | None
    not_in_ledger: float
    runs_without_ranks: tuple[str, ...]
    agents: tuple[Quiet, ...]
    agents_heard: int
    parts: tuple[Quiet, ...]
    parts_heard: int
    parts_known_from: datetime


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a report says, of [start, end)."""

    start: datetime
    end: datetime
    made_at: datetime
    goodput: float | None
    gpu_seconds: float
    productive: float
    causes: tuple[Cause, ...]
    incidents: tuple[IncidentFacts, ...]
    repair: Mttr
    downtime: float  # seconds in which at least one run stood still: outages that overlap count once
    runs: tuple[RunFacts, ...]
    unknown: Unknown

    @property
    def empty(self) -> bool:
        """Whether nothing at all is on record: no GPU time, no run, no incident."""
        return not (self.gpu_seconds or self.incidents or self.unknown.not_in_ledger or self.unknown.runs_without_ranks)


@dataclass(frozen=True, slots=True)
class Rows:
    """What the store holds of a period."""

    spending: Sequence[PeriodSpending]
    repairs: Sequence[Repair]
    incidents: Mapping[str, IncidentTransition]
    runs: Sequence[PeriodRun]
    agents: Sequence[Silence]
    parts: Sequence[Silence]


def gather(store: Store, start: datetime, end: datetime, now: datetime, *, agent_interval: float) -> Facts:
    """The facts of [start, end), `end` not after `now`. `agent_interval`: seconds between an agent's readings. Raises StoreError."""
    spending = period_spending(store, start, end)
    seen = [r for r in repairs(store, start) if r.onset < end]
    named = sorted({r.incident for r in seen} | {s.incident for s in spending if s.incident})
    rows = Rows(
        spending=spending,
        repairs=seen,
        incidents={i.incident: i for i in incidents_named(store, named)},
        runs=period_runs(store, start, end),
        agents=silent_agents(store, start, end, limit=_agent_limit(agent_interval)),
        parts=silent_parts(store, max(start, now - BEATS_KEPT), end, limit=SILENCE) if end > now - BEATS_KEPT else [],
    )
    return facts_of(rows, start, end, now, agent_interval=agent_interval)


def facts_of(rows: Rows, start: datetime, end: datetime, now: datetime, *, agent_interval: float) -> Facts:
    """The facts that `rows` come to."""
    by_category = _summed((Category(s.category), s.gpu_micros) for s in rows.spending)
    total, blind = sum(by_category.values()), by_category.get(Category.UNKNOWN, 0)
    return Facts(
        start=start,
        end=end,
        made_at=now,
        goodput=productive_share(by_category),
        gpu_seconds=total / 1e6,
        productive=by_category.get(Category.PRODUCTIVE, 0) / 1e6,
        causes=tuple(_causes(rows)),
        incidents=tuple(_incidents(rows, end)),
        repair=mttr(rows.repairs, start, end),
        downtime=union([_outage(r, end) for r in rows.repairs if _halted(r, rows.incidents)], start, end),
        runs=tuple(_runs(rows.spending)),
        unknown=Unknown(
            gpu_seconds=blind / 1e6,
            share=blind / total if total else None,
            not_in_ledger=_not_in_ledger(rows, start, end),
            runs_without_ranks=tuple(r.run for r in rows.runs if not r.ranks and not any(s.run == r.run for s in rows.spending)),
            agents=_quiet(rows.agents, start, end, _agent_limit(agent_interval)),
            agents_heard=len(rows.agents),
            parts=_quiet(rows.parts, max(start, now - BEATS_KEPT), end, SILENCE),
            parts_heard=len(rows.parts),
            parts_known_from=max(start, now - BEATS_KEPT),
        ),
    )


def _agent_limit(interval: float) -> float:
    return max(SILENCE, _INTERVALS * interval)


def _summed(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    sums: dict[K, int] = {}
    for key, micros in pairs:
        sums[key] = sums.get(key, 0) + micros
    return sums


# --- where the time went ---------------------------------------------------------------------


def _causes(rows: Rows) -> list[Cause]:
    """All time that was not productive, by cause: what incidents took by their fault, the rest by category. The largest first."""
    charged = [s for s in rows.spending if _charged(s)]
    faults = _summed((_fault(s.incident, rows.incidents), s.gpu_micros) for s in charged)
    counts = {fault: {s.incident for s in charged if s.incident and _fault(s.incident, rows.incidents) == fault} for fault in faults}
    rest = _summed((Category(s.category), s.gpu_micros) for s in rows.spending if not _charged(s))
    found = [Cause(fault, "incident", micros / 1e6, len(counts[fault])) for fault, micros in faults.items()]
    found += [Cause(c.value, _kind(c), micros / 1e6) for c, micros in rest.items() if c is not Category.PRODUCTIVE]
    return sorted(found, key=lambda c: (-c.gpu_seconds, c.name))


def _charged(s: PeriodSpending) -> bool:
    return bool(s.incident) or Category(s.category) in INCIDENT_PARTS


def _fault(incident: str, known: Mapping[str, IncidentTransition]) -> str:
    return known[incident].fault if incident in known else UNEXPLAINED


def _kind(category: Category) -> str:
    if category in OVERHEAD:
        return "overhead"
    if category is Category.UNKNOWN:
        return "unknown"
    return "unused" if category in (Category.IDLE, Category.MAINTENANCE) else "waiting"


def _runs(spending: Sequence[PeriodSpending]) -> list[RunFacts]:
    by_run: dict[str, dict[Category, int]] = {}
    for s in spending:
        sums = by_run.setdefault(s.run, {})
        sums[Category(s.category)] = sums.get(Category(s.category), 0) + s.gpu_micros
    found = [RunFacts(run, sum(sums.values()) / 1e6, productive_share(sums)) for run, sums in by_run.items()]
    return sorted(found, key=lambda r: (-r.gpu_seconds, r.run))


# --- incidents -------------------------------------------------------------------------------


def _incidents(rows: Rows, end: datetime) -> list[IncidentFacts]:
    """The costliest first, then the longest."""
    cost = _summed((s.incident, s.gpu_micros) for s in rows.spending if s.incident)
    found = []
    for r in rows.repairs:
        last = rows.incidents.get(r.incident)
        if last is None:
            continue
        resolved = r.resolved if r.resolved is not None and r.resolved < end else None
        seconds = ((resolved or end) - r.onset).total_seconds()
        micros = cost.get(r.incident)
        spent = None if micros is None else micros / 1e6
        place = (last.title, last.fault, last.severity, last.run, last.node)
        found.append(IncidentFacts(r.incident, *place, onset=r.onset, resolved=resolved, seconds=seconds, gpu_seconds=spent))
    return sorted(found, key=lambda i: (-(i.gpu_seconds or 0.0), -i.seconds, i.incident))


def _halted(r: Repair, known: Mapping[str, IncidentTransition]) -> bool:
    last = known.get(r.incident)
    return last is not None and bool(last.run) and halts(last.fault, last.attempt)


def _outage(r: Repair, end: datetime) -> tuple[datetime, datetime]:
    return r.onset, r.recovered or r.resolved or end


def union(stretches: Collection[tuple[datetime, datetime]], start: datetime, end: datetime) -> float:
    """Seconds of [start, end) that at least one of `stretches` covers."""
    covered, reached = timedelta(), start
    for first, last in sorted(stretches):
        first, last = max(first, reached), min(last, end)
        if first < last:
            covered += last - first
            reached = last
    return covered.total_seconds()


# --- what is not known -----------------------------------------------------------------------


def _not_in_ledger(rows: Rows, start: datetime, end: datetime) -> float:
    """Wall time x ranks of each run within the period, less what the ledger has of it."""
    kept = _summed((s.run, s.gpu_micros) for s in rows.spending)
    missing = 0
    for run in rows.runs:
        wall = to_micros(min(run.ended_at or end, end)) - to_micros(max(run.started_at, start))
        missing += max(0, wall * run.ranks - kept.get(run.run, 0))
    return missing / 1e6


def _quiet(heard: Sequence[Silence], start: datetime, end: datetime, limit: float) -> tuple[Quiet, ...]:
    """Those that were silent, the longest first."""
    found = []
    for s in heard:
        after = (end - max(s.last_heard, start)).total_seconds()
        silent_now = (end - s.last_heard).total_seconds() > limit
        if silent_now or s.gaps:
            found.append(Quiet(s.name, s.silent + (after if silent_now else 0.0), s.last_heard if silent_now else None))
    return tuple(sorted(found, key=lambda q: (-q.seconds, q.name)))
