"""node_left: of several nodes of an attempt one has left, and not by a silent host, so that the others cannot go on as they are.

Its launcher ended, or was started anew and has nothing of the attempt, or is gone together with its ranks. One whose command
had ended well has left nothing undone, and is none. None of it is said while ingest itself was deaf, nor of a run that ended.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from alerts.detectors.heartbeat_lost import RANKS_GONE, UNHEARD, deaf, lost_launchers, of_launcher, takes_part
from alerts.detectors.rank_exit import replaced
from alerts.detectors.verdict import Verdict
from alerts.snapshot import AttemptLook, LauncherLook, RankLook, RunLook, Snapshot
from pipeline.catalog.faults import NODE_LEFT
from pipeline.catalog.runs import GONE, STARTING
from pipeline.records import FindingTransition

NAME = "node_left"
PATIENCE = 2  # heartbeats without a word of a launcher whose ranks nobody sees
SETTLE = 2.0  # seconds after a launcher's last word in which its run may end, too, as when a scheduler ends the job on all nodes


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each node of a running attempt on several whose launcher does not take part in it any more."""
    if deaf(snapshot):
        return []
    return [verdict for run, attempt in snapshot.active() for verdict in _left(snapshot, run, attempt, now)]


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """What took the place of the attempt that was left. None: nothing did, or it cannot be told."""
    run = snapshot.run(finding.run)
    if run is None:
        return None
    return replaced(run, finding.attempt) or ("the run ended" if run.state != "started" else None)


def _left(snapshot: Snapshot, run: RunLook, current: AttemptLook, now: datetime) -> Iterator[Verdict]:
    if not current.nodes or current.stopping_at:
        return
    lost = lost_launchers(snapshot, run, now)
    for one in snapshot.launchers:
        if one.run != run.run or one.node not in current.nodes or one.well(current):
            continue
        since, why, confidence = now - timedelta(seconds=one.age), "", 0.95
        if one.state == GONE and one.age > SETTLE:
            why = "its launcher ended"
        elif one in lost and _ranks_gone(snapshot, current, one):
            why = RANKS_GONE
        elif one in lost and _unseen(snapshot, current, one):
            why, confidence = f"its launcher has been silent for {one.age:.0f} s, and nothing is seen of its ranks", 0.8
        elif _began_anew(snapshot, run, current, one):
            since, why = one.at - timedelta(seconds=one.waited), "its launcher was started anew"
        if why:
            yield of_launcher(NAME, NODE_LEFT, run, one, f"{one.node} has left attempt {current.attempt}: {why}", since, confidence)


def _began_anew(snapshot: Snapshot, run: RunLook, current: AttemptLook, one: LauncherLook) -> bool:
    """Whether a launcher asks for its first attempt while others still carry the one that its node has a part in."""
    if one.state != STARTING or not one.heard or one.meant_by(current) or snapshot.ended_well(current, one.node):
        return False
    return any(takes_part(run, other) for other in snapshot.launchers_of(run.run))


def _ranks_gone(snapshot: Snapshot, current: AttemptLook, launcher: LauncherLook) -> bool:
    ranks = _ranks(snapshot, current, launcher)
    if ranks and all(r.gone for r in ranks):
        return True
    return launcher.age > UNHEARD and bool(ranks) and all(r.gone or r.seen_age > UNHEARD for r in ranks)


def _unseen(snapshot: Snapshot, current: AttemptLook, launcher: LauncherLook) -> bool:
    """Whether nobody vouches for a node's ranks: without rings no agent sees any, and their launcher is gone for twice as long as makes it
    lost. Its command ends with it; and where it was only frozen, it stops its command and waits as a spare once it hears of this."""
    return launcher.age > PATIENCE * snapshot.detect.heartbeat and not _ranks(snapshot, current, launcher)


def _ranks(snapshot: Snapshot, current: AttemptLook, launcher: LauncherLook) -> list[RankLook]:
    return [r for r in snapshot.ranks_of(current.attempt) if r.node == launcher.node]
