"""disk-full: the file system that the checkpoints lie on has no byte left."""

from pipeline.catalog.faults import FILESYSTEM_FULL
from pipeline.clock import utcnow
from surefoot.drill import disks
from surefoot.drill.inject import await_step
from surefoot.drill.kinds.kind import Scene
from surefoot.drill.kinds.small_disk import SIZE, of_the_disk, truth
from surefoot.drill.plan import Truth


def inject(scene: Scene) -> Truth:
    """Write until nothing more can be written."""
    await_step(scene.plan, scene.stack, scene.subject, scene.pause)
    written = disks.fill(scene.ground.folder)
    return truth(scene, FILESYSTEM_FULL, utcnow(), f"wrote {written >> 20} MiB beside the checkpoints: their {SIZE >> 20} MiB are full")


def remove(scene: Scene) -> str:
    """Delete what was written."""
    disks.empty(scene.ground.folder)
    return "the drill deleted what it had written"


DISK_FULL = of_the_disk("disk-full", FILESYSTEM_FULL, inject, remove)
