"""read-only: the file system that the checkpoints lie on can no longer be written, as after an error on its disk."""

from pipeline.catalog.faults import FILESYSTEM_READ_ONLY
from pipeline.clock import utcnow
from surefoot.drill import disks
from surefoot.drill.inject import await_step
from surefoot.drill.kinds.kind import Scene
from surefoot.drill.kinds.small_disk import of_the_disk, truth
from surefoot.drill.plan import Truth


def inject(scene: Scene) -> Truth:
    """Remount it read-only."""
    await_step(scene.plan, scene.stack, scene.subject, scene.pause)
    disks.remount(scene.ground.folder, read_only=True, pause=scene.pause)
    return truth(scene, FILESYSTEM_READ_ONLY, utcnow(), "remounted the file system of the checkpoints read-only")


def remove(scene: Scene) -> str:
    """Remount it as it was."""
    disks.remount(scene.ground.folder, read_only=False, pause=scene.pause)
    return "the drill remounted it, writable again"


READ_ONLY = of_the_disk("read-only", FILESYSTEM_READ_ONLY, inject, remove)
