"""Explicit faults that explain why an attempt failed: the failure is what came of the fault, and both are one incident. Pure.

Only evidence joins them, never the time alone: the words of the error that ended the rank, a checkpoint being written on what cannot
be written, or the kernel's kill on the rank's node just before where it may have been of the rank.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from alerts.detectors import rank_exit
from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import KILLED, NEAR, rerooted
from alerts.incidents.lifecycle import State
from pipeline.catalog.faults import (
    FILESYSTEM_FULL,
    FILESYSTEM_READ_ONLY,
    HOST_OOM_KILL,
    MOUNT_STALE_OR_GONE,
    RANK_CRASH,
    STARTUP_FAILURE,
)
from pipeline.catalog.layers import Phase, Severity, gravity
from pipeline.records import FindingTransition, IncidentTransition

TOLD: Final[Mapping[str, tuple[str, ...]]] = {  # how an error tells of a fault, in the C library's words
    FILESYSTEM_FULL.name: ("No space left on device",),
    FILESYSTEM_READ_ONLY.name: ("Read-only file system",),
    MOUNT_STALE_OR_GONE.name: ("Stale file handle", "Transport endpoint is not connected"),
}
CAUSES: Final = frozenset({HOST_OOM_KILL.name, *TOLD})
FAILED: Final = frozenset({RANK_CRASH.name, STARTUP_FAILURE.name})
OF_ITSELF: Final = frozenset({"-6", "-7"})  # signals by which a program ends for an error of its own: SIGABRT, SIGBUS
SIGKILL: Final = frozenset({"-9", "137"})  # 137 is how a shell tells of its command
CHILD_KILLED: Final = ("SIGKILL", "signal: Killed", "signal 9", "exit code -9", "exitcode -9", "exit code: -9", "exitcode: -9")
"""How an error tells that a process was killed which its rank had begun: in the words of PyTorch's loader, multiprocessing, subprocess."""
ENDING: Final = timedelta(seconds=5)  # a rank that the kernel killed may take so long to end: until then its kill wakes nobody
PASSES, MARGIN = 2, 5.0  # an agent's passes after which it has told of what it sees, and seconds for its way


@dataclass(frozen=True, slots=True)
class Death:
    """How the first failing rank of an attempt ended, and the errors that its ranks left."""

    code: str
    phase: str
    errors: str


def deaths(findings: Iterable[FindingTransition], printed: str = "") -> list[Death]:
    """What the findings of an incident say about how its ranks ended, with what they printed where they may have ended by that."""
    return [_death(json.loads(f.evidence or "{}"), printed) for f in findings if f.detector == rank_exit.NAME]


def _death(evidence: Mapping[str, Any], printed: str) -> Death:
    origin = evidence.get("origin") or {}
    code = origin.get("code", "")
    errors = " ".join(e.get("error", "") for e in evidence.get("exits", ()))
    own = not code.startswith("-") or code in OF_ITSELF
    return Death(code, origin.get("phase", ""), f"{errors} {printed if own else ''}".strip())


def explains(cause: Verdict, incident: IncidentTransition, died: Sequence[Death]) -> bool:
    """Whether `cause`, which is there now, is why the attempt of `incident` failed; `died` tells how it did."""
    if cause.fault.name not in CAUSES or not incident.attempt or incident.node != cause.node or incident.onset is None:
        return False
    if incident.new_state == State.RESOLVED or incident.fault not in FAILED:
        return (incident.fault, incident.device) == (cause.fault.name, cause.device) and incident.new_state != State.RESOLVED
    if cause.fault is HOST_OOM_KILL:
        return abs(cause.onset - incident.onset) <= KILLED and _killed(cause, incident, died)
    if cause.onset - incident.onset > NEAR:
        return False
    saving = incident.run in cause.under and any(d.phase == Phase.CHECKPOINT for d in died)
    return saving or any(words in d.errors for d in died for words in TOLD[cause.fault.name])


def _killed(cause: Verdict, incident: IncidentTransition, died: Sequence[Death]) -> bool:
    """Whether what the kernel killed may have been a rank of the incident's run, or what a rank could not do without.

    A rank that was killed ended by SIGKILL, or nobody knows how. One that ended with a code of its own did so for a reason of its own,
    unless the kill was in its run's control group, or it tells that something of it was killed: a loader's process, say. Where the kernel's
    log would have named a rank of the run and did not, none was killed, whatever the node's count says.
    """
    told = _told_last(cause)
    if told.get("run", incident.run) != incident.run:
        return False  # in the control group of another run
    if any(d.code.startswith("-") and d.code not in SIGKILL for d in died):
        return False
    by_itself = [d for d in died if d.code and d.code not in SIGKILL]
    if "run" in told:
        return True
    if not by_itself and incident.rank is not None and incident.run in cause.evidence.get("spared", ()):
        return False
    return all(any(words in d.errors for words in CHILD_KILLED) for d in by_itself)


def _told_last(cause: Verdict) -> Mapping[str, Any]:
    """What the newest event that showed `cause` told, or where a reading did, what was read: `run` is whose control group it was."""
    newest: Mapping[str, Any] = (cause.evidence.get("seen") or [{}])[-1]
    return newest if "code" in newest else cause.evidence.get("place", {})


def because(incident: IncidentTransition, cause: Verdict, now: datetime) -> dict[str, Any]:
    """The fields of `incident` once `cause` is known to be why; {} where it says so already. It is as bad as the worse of the two."""
    if incident.fault not in FAILED:
        return {}
    of_rank = cause.fault is HOST_OOM_KILL  # which one died of it; a file system hits them all
    confidence = incident.confidence if of_rank else cause.confidence
    changes = rerooted(incident, cause.fault, cause.node, incident.rank if of_rank else None, confidence, cause.device)
    worst = min((Severity(incident.severity), cause.fault.severity), key=gravity)
    return changes | {"severity": worst} | ({} if incident.located_at else {"located_at": now})


def part_of(other: IncidentTransition, incident: IncidentTransition) -> bool:
    """Whether `other`, where a cause was found, is wholly about what `incident` came of: no fault of many nodes, nor another run's."""
    if other.attempt or other.new_state == State.RESOLVED:
        return False
    return other.run == incident.run or (other.run == "" and other.node == incident.node)


def awaited(incident: IncidentTransition, died: Sequence[Death], interval: float) -> datetime | None:
    """Until when the cause may be found that an error has told of; None where none has, or it was found."""
    if incident.fault not in FAILED or incident.onset is None:
        return None
    if not any(words in d.errors for d in died for told in TOLD.values() for words in told):
        return None
    return incident.onset + timedelta(seconds=PASSES * interval + MARGIN)


def may_grow(incident: IncidentTransition, runs: Iterable[str], now: datetime) -> bool:
    """Whether nobody is told of a kill yet, as a rank may have been killed that has not ended: `runs` are those on its node."""
    young = incident.detected_at is not None and now - incident.detected_at < ENDING
    return young and incident.fault == HOST_OOM_KILL.name and not incident.attempt and incident.new_state == State.OPEN and any(runs)
