"""What may name a run, once: who starts a run and who is asked about one hold its name to the same rule."""

import re
from typing import Final

from pipeline.errors import InputError

_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


def check_run(run: str) -> None:
    """Raises InputError for a run id that cannot be part of a file's name or does not fit into a ring's header."""
    if not _RUN.fullmatch(run):
        raise InputError(f"run id {run!r} must be 1 to 60 letters, digits, dots, dashes or underscores, and begin with a letter or digit")
