"""Names of runs and attempts, and the count of a run's launches on this machine."""

import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Final

from pipeline.catalog.runs import check_run as check_run

_SUFFIX: Final = ".launch"


def default_run(command: str, now: datetime) -> str:
    """A new run's id: the command's name, the time (UTC), and four digits against two starts within a second."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePath(command).name).strip("-._")[:30] or "run"
    return f"{name}-{now:%Y%m%d-%H%M%S}-{token_hex(2)}"


def attempt_id(run: str, launch: int) -> str:
    """The id of the run's attempt number `launch`, counted from 1."""
    return f"{run}-{launch}"


def last_launch(folder: Path, run: str) -> int:
    """The number of the run's last launch from here, 0 where there was none."""
    with suppress(OSError, ValueError):
        return int((folder / (run + _SUFFIX)).read_text(encoding="ascii"))
    return 0


def note_launch(folder: Path, run: str, launch: int) -> None:
    """Keeps `launch`, so that no attempt id is used twice. A folder that cannot be written costs only that.

    It must outlive a reboot, which is after all when a run is started again.
    """
    path = folder / (run + _SUFFIX)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        fresh.write_text(str(launch), encoding="ascii")
        fresh.replace(path)
