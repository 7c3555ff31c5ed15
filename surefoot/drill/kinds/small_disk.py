"""What the kinds about disks share: a training whose checkpoints lie on a small file system of their own."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

from pipeline.catalog.fault import Fault
from pipeline.errors import NotPossible
from surefoot.drill import disks
from surefoot.drill.kinds.kind import Ground, Kind, Scene
from surefoot.drill.plan import Located, Truth

SIZE: Final = 64 << 20  # bytes; a checkpoint that fails in the middle and is deleted frees far less than the 2 % that count as full
INTERVAL: Final = 1.0  # seconds between the agent's readings
OUTLAST: Final = 160  # steps: nothing restarts the training, and an incident of a run that is over is over, too


def prepare(kind: str) -> None:
    """Give this process, and with it all that it starts, mounts of its own. Raises NotPossible."""
    try:
        disks.unshare()
    except OSError as e:
        raise NotPossible(f"drill {kind} mounts a small file system of its own ({e.strerror}): run it as root") from e


@contextmanager
def small_disk(out: Path) -> Iterator[Ground]:
    """The folder of the checkpoints, as a file system of its own."""
    folder = out / "checkpoints"
    folder.mkdir(parents=True)
    with disks.mounted(folder, SIZE):
        yield Ground(folder, told=f", its checkpoints on a file system of {SIZE >> 20} MiB")


def truth(scene: Scene, fault: Fault, at: datetime, what: str) -> Truth:
    """The node's fault, at the mount: of no attempt and no rank."""
    located = Located(fault.layer, scene.stack.settings.node, None, str(scene.ground.folder))
    return Truth(at, "", located, "", fault, what)


def of_the_disk(name: str, fault: Fault, inject: Callable[[Scene], Truth], remove: Callable[[Scene], str]) -> Kind:
    """A kind that hits the small disk, and is over when the drill has taken it away."""
    return Kind(
        name=name,
        fault=fault,
        inject=inject,
        remove=remove,
        prepare=partial(prepare, name),
        ground=small_disk,
        steps=OUTLAST,
        agent_interval=INTERVAL,
    )
