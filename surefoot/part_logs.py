"""The log files of the parts under `surefoot up`: appended to by the parts themselves, and kept from filling the disk."""

import os
from pathlib import Path

CAP = 16 << 20  # bytes a log may grow to
KEPT = 4 << 20  # bytes of its end that are kept in `<name>.old` when it is cut


def log_path(state_dir: Path, part: str) -> Path:
    """The log file of `part`."""
    return state_dir / "logs" / f"{part}.log"


def last_line(path: Path) -> str:
    """The last line of a log; "" where there is none."""
    lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def cut(path: Path) -> bool:
    """Where the log is longer than CAP, keep its end beside it and empty it; whether that was done.

    Its writer goes on with the same file, which it must have opened for appending. What it writes between the
    copy and the cut is lost.
    """
    if path.stat().st_size <= CAP:
        return False
    with path.open("rb") as f:
        f.seek(-KEPT, os.SEEK_END)
        path.with_suffix(".log.old").write_bytes(f.read().partition(b"\n")[2])
    os.truncate(path, 0)
    return True
