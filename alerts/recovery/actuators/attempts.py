"""Attempts for launchers that have just started and ask for one."""

from collections.abc import Collection, Iterator
from datetime import datetime

from alerts.snapshot import AttemptLook, LauncherLook, RunLook, Snapshot
from alerts.transitions import LEADER
from pipeline.catalog.runs import STARTING, parse_nodes
from pipeline.records import AttemptTransition


def asking(snapshot: Snapshot) -> list[LauncherLook]:
    """The launchers that wait for their first attempt; how many of them a run takes is another matter (gather.py)."""
    return [b for b in snapshot.launchers if b.state == STARTING and not b.attempt and b.launch >= 1 and b.heard]


def due(snapshot: Snapshot, used: Collection[str], now: datetime) -> Iterator[AttemptTransition]:
    """An attempt for each launcher that waits for its first: the launch it asks for, or the next free one where that was used up.

    What a launcher minted for itself while nobody answered has a row, and is simply used. `used` are runs that
    have attempts and are not in the snapshot yet: they are answered once they are.
    """
    for beat in asking(snapshot):
        if parse_nodes(beat.nodes).several:
            continue
        run = snapshot.run(beat.run)
        launch = _launch(snapshot, run, beat) if run else beat.launch
        if launch is None or beat.run in used:
            continue
        yield AttemptTransition(
            old_state="",
            new_state="issued",
            reason="its launcher has started",
            actor=LEADER,
            at=now,
            run=beat.run,
            attempt=f"{beat.run}-{launch}",
            launch=launch,
            node=beat.node,
        )


def _launch(snapshot: Snapshot, run: RunLook, beat: LauncherLook) -> int | None:
    """The launch to issue; None where one that answers this launcher is there."""
    if run.state != "started":
        return None
    taken = [a for a in run.attempts if a.launch >= beat.launch]
    if not all(_used_up(snapshot, run, a) for a in taken):
        return None
    return max((a.launch + 1 for a in taken), default=beat.launch)


def _used_up(snapshot: Snapshot, run: RunLook, attempt: AttemptLook) -> bool:
    """Whether an attempt is of an earlier launcher: it was over, or nobody speaks for it, before the run was started again."""
    last = attempt.ended_at or attempt.running_at or attempt.starting_at
    if last is None or last >= run.changed_at:
        return False
    return attempt.state == "ended" or not any(b.attempt == attempt.attempt and b.heard for b in snapshot.launchers)
