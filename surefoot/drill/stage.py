"""What a drill stands on: a folder and a pager; at the end nothing is left of all that was started on it."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exporters.job.procfs import Stat, pids, read_stat
from exporters.job.stop import stop
from exporters.job.tree import Tree, become_subreaper
from pipeline.errors import SettingsError
from surefoot.drill.pager import Pager

KILL_SECONDS = 15.0


@contextmanager
def stage(prefix: str, keep: Path | None = None) -> Iterator[tuple[Path, Pager]]:
    """The folder (`keep`, or one with a name of `prefix` that goes at the end) and the pager.

    For a process that has nothing else to do: every process that it started in the block, or that those did, is killed with it.
    """
    with _folder(prefix, keep) as folder, _pager() as pager, _nothing_left():
        yield folder, pager


def descendants(pid: int) -> list[Stat]:
    """The processes that `pid` started, and those that they did, as /proc shows them now."""
    stats = [stat for one in pids() if (stat := read_stat(one))]
    found = [stat for stat in stats if stat.ppid == pid]
    for parent in found:  # grows while it is walked
        found += [stat for stat in stats if stat.ppid == parent.pid]
    return found


@contextmanager
def _folder(prefix: str, keep: Path | None) -> Iterator[Path]:
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        if any(keep.iterdir()):
            raise SettingsError(f"{keep} is not empty: name a new folder")
        yield keep.absolute()
        return
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as e:
        raise SettingsError(f"no temporary folder can be made ({e.strerror}): name one that can be written in TMPDIR") from e
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _pager() -> Iterator[Pager]:
    pager = Pager()
    try:
        yield pager
    finally:
        pager.close()


@contextmanager
def _nothing_left() -> Iterator[None]:
    """Orphans of what is started here become our children, and are killed and waited for at the end."""
    become_subreaper()
    tree = Tree()  # what runs already is not ours to end
    try:
        yield
    finally:
        stop(tree.processes, (), grace=0.0, limit=KILL_SECONDS, turn=time.sleep)
