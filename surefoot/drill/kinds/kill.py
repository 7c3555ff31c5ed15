"""kill: a rank's process is killed, wherever it is."""

import os
import signal

from pipeline.catalog.faults import RANK_CRASH
from pipeline.clock import utcnow
from surefoot.drill.inject import await_step, look, place_of
from surefoot.drill.kinds.kind import Kind, Scene
from surefoot.drill.plan import Truth


def inject(scene: Scene) -> Truth:
    """SIGKILL."""
    rank = await_step(scene.plan, scene.stack, scene.subject, scene.pause)
    os.kill(rank.pid, signal.SIGKILL)
    at = utcnow()
    phase = (look(scene.stack, scene.subject.run, scene.plan.rank) or rank).cell.phase
    what = f"SIGKILL to rank {scene.plan.rank} in {phase or 'between phases'}"
    return Truth(at, rank.attempt, place_of(RANK_CRASH, scene.plan, scene.stack), phase, RANK_CRASH, what)


KILL = Kind(name="kill", fault=RANK_CRASH, inject=inject)
