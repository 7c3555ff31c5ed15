"""The end of runs that nobody speaks for any more: who would write it is gone, so the leader does, once nothing of the run is left."""

from datetime import datetime

from alerts.book import Book
from alerts.detectors.heartbeat_lost import RANKS_GONE, UNHEARD, deaf, lost_launchers
from alerts.snapshot import LauncherLook, RunLook, Snapshot
from alerts.transitions import follow
from pipeline.catalog.faults import HOST_DOWN
from pipeline.queries.run_transitions import run_transitions

ALL_WELL = "the command ended well on every node, and the launcher that speaks for the run is gone"


def end(book: Book, snapshot: Snapshot, now: datetime) -> None:
    """Write the end of each run that is over and has nobody to say so. Raises StoreError.

    A run with a host that is down is not ended: it may be the network alone.
    """
    down = {f.run for f in book.findings.values() if f.fault == HOST_DOWN.name}
    for run in snapshot.runs:
        if unspoken(snapshot, run):
            state, reason, code = "finished", ALL_WELL, 0
        elif run.run not in down and is_lost(snapshot, run, now):
            state, reason, code = "failed", RANKS_GONE, None
        else:
            continue
        last = run_transitions(book.store, run.run)[-1]
        if last.new_state == "started":  # else the launcher's own word came in just now
            book.write_end(last, follow(last, state, reason, now, exit_code=code))


def unspoken(snapshot: Snapshot, run: RunLook) -> bool:
    """Whether every command of a run on several nodes ended well, and nobody is left to say that it has finished."""
    if run.state != "started" or run.abandoned or deaf(snapshot) or not snapshot.all_well(run):
        return False
    speakers = (one for one in snapshot.launchers if one.run == run.run and one.node == run.members[0])
    return all(one.age > snapshot.detect.heartbeat or not one.well(run.current) for one in speakers)  # one begun anew knows nothing of it


def is_lost(snapshot: Snapshot, run: RunLook, now: datetime) -> bool:
    """Whether all launchers of a run are gone, and with them all of its ranks."""
    lost = lost_launchers(snapshot, run, now)
    return len(lost) == len(run.members) and is_over(snapshot, run, min(lost, key=lambda one: one.age))


def is_over(snapshot: Snapshot, run: RunLook, launcher: LauncherLook) -> bool:
    """Whether a run without launcher has no rank left: its attempt ended, all ranks are gone, or none is heard."""
    current = run.current
    if current and current.state == "ended":
        return True
    ranks = snapshot.ranks_of(current.attempt) if current else []
    if current and ranks and len(ranks) >= current.ranks and all(r.gone for r in ranks):
        return True
    return launcher.age > UNHEARD and all(r.gone or r.seen_age > UNHEARD for r in ranks)
