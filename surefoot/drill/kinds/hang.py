"""hang: a rank's process is stopped, outside or inside a collective."""

import os
import signal
import time

from pipeline.catalog.faults import RANK_STOPPED
from pipeline.clock import utcnow
from surefoot.drill.inject import await_step, look, place_of, reach
from surefoot.drill.kinds.kind import Kind, Scene
from surefoot.drill.plan import Plan, Truth
from surefoot.hook.layout import LiveCell

COLLECTIVE_PHASES = frozenset({"comm_wait"})


def inject(scene: Scene) -> Truth:
    """SIGSTOP. It lands where the plan wants it: the phase is read again after the signal, and a rank that had moved on is let go
    and stopped anew."""
    plan, stack, subject = scene.plan, scene.stack, scene.subject
    deadline = time.monotonic() + reach(plan)
    while True:
        rank = await_step(plan, stack, subject, scene.pause, lambda cell: _fits(plan, cell), deadline)
        os.kill(rank.pid, signal.SIGSTOP)
        at = utcnow()
        hit = look(stack, subject.run, plan.rank) or rank
        if _fits(plan, hit.cell):
            what = f"SIGSTOP to rank {plan.rank} in {hit.cell.phase or 'between phases'}"
            return Truth(at, rank.attempt, place_of(RANK_STOPPED, plan, stack), hit.cell.phase, RANK_STOPPED, what)
        os.kill(rank.pid, signal.SIGCONT)


def _fits(plan: Plan, cell: LiveCell) -> bool:
    return (cell.phase in COLLECTIVE_PHASES) == (plan.where == "inside")


HANG = Kind(name="hang", fault=RANK_STOPPED, inject=inject)
