"""Attempts for launchers that have just started and ask for one."""

from collections.abc import Iterator
from datetime import datetime

from alerts.snapshot import FRESH, Snapshot
from alerts.transitions import LEADER
from pipeline.records import AttemptTransition


def due(snapshot: Snapshot, now: datetime) -> Iterator[AttemptTransition]:
    """An attempt for each launcher that waits for its first: it is starting, has none, and there is no row for that launch.

    What a launcher minted for itself while nobody answered has a row, and is simply used.
    """
    for beat in snapshot.launchers:
        if beat.state != "starting" or beat.attempt or beat.launch < 1 or beat.age > 4 * FRESH:
            continue
        run = snapshot.run(beat.run)
        if run and (run.state != "started" or any(a.launch >= beat.launch for a in run.attempts)):
            continue
        yield AttemptTransition(
            old_state="",
            new_state="issued",
            reason="its launcher has started",
            actor=LEADER,
            at=now,
            run=beat.run,
            attempt=f"{beat.run}-{beat.launch}",
            launch=beat.launch,
            node=beat.node,
        )
