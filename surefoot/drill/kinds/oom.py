"""oom: a rank takes more and more memory, until the limit of the job's control group is reached and the kernel kills it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from exporters.job.procfs import ZOMBIE, read_stat
from pipeline.catalog.faults import HOST_OOM_KILL
from pipeline.clock import utcnow
from pipeline.errors import NotPossible
from surefoot.drill import memory, orders
from surefoot.drill.inject import await_step
from surefoot.drill.kinds.kind import Ground, Kind, Scene
from surefoot.drill.kinds.ordered import order, truth
from surefoot.drill.plan import NotCarriedOut, Truth

ROOM: Final = 256 << 20  # bytes that are left when the rank begins to take them: it is by far the largest in the group when it dies
INTERVAL: Final = 1.0  # seconds between the agent's readings: by two of them nothing more is killed
_DIE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.002


def prepare() -> None:
    """Raises NotPossible where no control group can be had."""
    try:
        with memory.group():
            pass
    except OSError as e:
        missing = "run it as root, where there is cgroup v1 or v2 with the memory controller"
        raise NotPossible(f"drill oom makes a memory control group of its own ({e.strerror}): {missing}") from e


@contextmanager
def limited(_: Path) -> Iterator[Ground]:
    """The whole training in a control group of its own, from its start; the limit comes later."""
    with memory.group() as made:
        enter = ("sh", "-c", 'echo $$ > "$0" && exec "$@"', str(made.procs))
        yield Ground(made.folder, enter, f", in a memory control group of its own (version {made.version})")


def inject(scene: Scene) -> Truth:
    """Let the rank take memory; once it is dead, which is the moment of the fault, nothing more is asked of anybody."""
    made = memory.at(scene.ground.folder)
    rank = scene.plan.rank
    await_step(scene.plan, scene.stack, scene.subject, scene.pause)  # what it needs at its start is not known before
    most = made.used + ROOM
    made.limit(most)
    ordered = order(scene, orders.HOARD, most)
    alive, deadline = utcnow(), time.monotonic() + _DIE_SECONDS
    while (stat := read_stat(ordered[0].pid)) and stat.state not in ZOMBIE:
        if time.monotonic() > deadline:
            raise NotCarriedOut(f"the kernel did not kill rank {rank}, which takes more than its group's {most >> 20} MiB")
        alive = utcnow()
        scene.pause(_LOOK_SECONDS)
    orders.withdraw(scene.subject.out)
    if not made.kills:
        raise NotCarriedOut(f"rank {rank} died, but not for want of memory")
    made.limit(None)
    what = f"the kernel killed rank {rank}, which outgrew the {most >> 20} MiB of its control group"
    return replace(truth(scene, HOST_OOM_KILL, ordered, what), injected_at=alive, what=what)


OOM = Kind(name="oom", fault=HOST_OOM_KILL, inject=inject, prepare=prepare, ground=limited, agent_interval=INTERVAL)
