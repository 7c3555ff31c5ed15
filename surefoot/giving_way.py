"""On a machine that also trains, the training comes first: the parts of a stack run at a raised nice value.

Where the kernel shares the processor between sessions first (autogroups, sched(7)), a process's own value counts
only inside its session; each part leads one, so that the session's value is raised, too.
"""

import errno
import os
from pathlib import Path
from typing import Final

NICE: Final = 10


def give_way() -> None:
    """Raises this process's nice value, and so that of all it starts; a higher one stays."""
    os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))


def session_gives_way(pid: int, proc: Path = Path("/proc")) -> bool:
    """Raises the nice value of the session that `pid` leads; whether that is settled (one may ask ten times a second)."""
    try:
        with (proc / str(pid) / "autogroup").open("r+") as f:
            f.write(str(NICE))
    except OSError as e:  # no such process any more, no autogroups here, or not ours to say
        return e.errno != errno.EAGAIN
    return True
