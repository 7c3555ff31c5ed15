"""The end of runs whose launcher is gone: who would write it is no more, so the leader does, once nothing of the run is left."""

from datetime import datetime

from alerts.book import Book
from alerts.detectors.heartbeat_lost import RANKS_GONE, UNHEARD, lost_launchers
from alerts.snapshot import GONE, LauncherLook, RunLook, Snapshot
from alerts.transitions import follow
from pipeline.catalog.faults import LAUNCHER_LOST, NODE_LEFT
from pipeline.queries.run_transitions import run_transitions


def end(book: Book, snapshot: Snapshot, now: datetime) -> None:
    """Write the end of each run that is found to be lost and is over. Raises StoreError."""
    found = {f.run for f in book.findings.values() if f.fault in (LAUNCHER_LOST.name, NODE_LEFT.name)}
    for run in snapshot.runs:
        lost = lost_launchers(snapshot, run, now) if run.run in found else []
        if len(lost) < len(run.members) or not is_over(snapshot, run, min(lost, key=lambda one: one.age)):
            continue
        last = run_transitions(book.store, run.run)[-1]
        if last.new_state == "started":  # else the launcher's own word came in just now
            book.write_end(last, follow(last, "failed", RANKS_GONE, now))


def is_over(snapshot: Snapshot, run: RunLook, launcher: LauncherLook) -> bool:
    """Whether a run without launcher has no rank left: its attempt ended, all ranks are gone, or none is heard."""
    current = run.current
    if current and current.state == "ended":
        return True
    ranks = snapshot.ranks_of(current.attempt) if current else []
    if current and ranks and len(ranks) >= current.ranks and all(r.process_state in GONE for r in ranks):
        return True
    return launcher.age > UNHEARD and all(r.process_state in GONE or r.seen_age > UNHEARD for r in ranks)
