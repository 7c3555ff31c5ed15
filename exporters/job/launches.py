"""Names of runs and attempts, and the count of a run's launches on this machine."""

import os
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePath
from secrets import token_hex
from typing import Final

from pipeline.errors import InputError

_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_SUFFIX: Final = ".launch"


def default_run(command: str, now: datetime) -> str:
    """A new run's id: the command's name, the time (UTC), and four digits against two starts within a second."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePath(command).name).strip("-._")[:30] or "run"
    return f"{name}-{now:%Y%m%d-%H%M%S}-{token_hex(2)}"


def check_run(run: str) -> None:
    """Raises InputError for a run id that cannot be part of a file's name or does not fit into a ring's header."""
    if not _RUN.fullmatch(run):
        raise InputError(f"run id {run!r} must be 1 to 60 letters, digits, dots, dashes or underscores, and begin with a letter or digit")


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
