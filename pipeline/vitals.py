"""Is everything fine? A pure answer from the incidents that are open and from when each part was last heard.

Unknown is never ok: a part that is silent, or was never heard, makes the whole unknown unless something
worse is known.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pipeline.catalog.layers import Severity
from pipeline.queries.signs_of_life import LastSign
from pipeline.records import IncidentTransition
from pipeline.settings import Settings

AGENT, LAUNCHER, JOBS, INGEST = "agent", "launcher", "jobs", "ingest"
RESOLVED = "resolved"
_MISSED = 3  # this many of an agent's intervals may pass before its silence means anything


class Health(StrEnum):
    """How something is. Degraded: work goes on all the same."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sign:
    """One part's sign of life: last heard `at` (None: never), and what follows from that."""

    component: str
    node: str
    run: str
    at: datetime | None
    health: Health
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer, and what it rests on."""

    health: Health
    reason: str


def judge_signs(heard: Iterable[LastSign], running: Iterable[str], settings: Settings, now: datetime) -> list[Sign]:
    """What each part's last sign means at `now`; the silent ones first.

    `running` are the runs in progress: only their launchers are expected to speak.
    """
    expected = set(running)
    rows = [row for row in heard if row.component != LAUNCHER or row.run in expected]
    signs = [_judge(row, patience(row.component, settings), now) for row in rows]
    found = {row.component for row in rows}
    signs += [_never(component, "") for component in (INGEST, JOBS, AGENT) if component not in found]
    spoken = {row.run for row in rows if row.component == LAUNCHER}
    signs += [_never(LAUNCHER, run) for run in sorted(expected - spoken)]
    return sorted(signs, key=lambda s: (s.health is Health.OK, s.component, s.node, s.run))


def overall(incidents: Sequence[IncidentTransition], signs: Sequence[Sign]) -> Verdict:
    """The health of everything. Only incidents that are not resolved count; the worst thing known decides."""
    still = [i for i in incidents if i.new_state != RESOLVED]
    silent = [s for s in signs if s.health is not Health.OK]
    grave = [i for i in still if i.severity in (Severity.CRITICAL, Severity.ERROR)]
    if grave:
        return Verdict(Health.FAILED, grave[0].title)
    if silent:
        return Verdict(Health.UNKNOWN, silent[0].reason)
    if still:
        return Verdict(Health.DEGRADED, still[0].title)
    return Verdict(Health.OK, "no incident is open and every part has been heard")


def patience(component: str, settings: Settings) -> float:
    """For how many seconds a part may be silent before that means anything."""
    if component == AGENT:
        return max(settings.detect.heartbeat, _MISSED * settings.agent.interval)
    return settings.detect.heartbeat


def _judge(row: LastSign, patience: float, now: datetime) -> Sign:
    silence = (now - row.at).total_seconds()
    if silence <= patience:
        return Sign(row.component, row.node, row.run, row.at, Health.OK, f"heard within {patience:.0f} s")
    whose = _named(row.component, row.run) + (f" on {row.node}" if row.node else "")
    return Sign(row.component, row.node, row.run, row.at, Health.UNKNOWN, f"the {whose} has been silent for more than {patience:.0f} s")


def _never(component: str, run: str) -> Sign:
    return Sign(component, "", run, None, Health.UNKNOWN, f"no {_named(component, run)} has been heard yet")


def _named(component: str, run: str) -> str:
    named = {JOBS: "jobs process", INGEST: "ingest process"}.get(component, component)
    return f"{named} of {run}" if run else named
