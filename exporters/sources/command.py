"""The output of a program: no shell, a deadline, and no more of it than is wanted."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Final

from pipeline.sizes import bound

_TOLD: Final = 300  # characters of what it complains of
_MOST_COMPLAINTS: Final = 64 << 10


def output(argv: Sequence[str], timeout: float, most: int) -> str:
    """What `argv` prints, run with messages in English and Slurm's times in seconds since 1970.

    Raises OSError, with a line that says why, where it is not there or cannot be run, takes longer than `timeout` seconds, prints more
    than `most` bytes or ends with an error.
    """
    if shutil.which(argv[0]) is None:
        raise OSError(f"{argv[0]} was not found: install it here, or put its folder on the agent's PATH")
    with tempfile.TemporaryFile() as complaints:
        told, status, late = _run(("env", "LC_ALL=C", "SLURM_TIME_FORMAT=%s", *argv), complaints, timeout, most)
        complaints.seek(0)
        lines = complaints.read(_MOST_COMPLAINTS).decode("utf-8", "backslashreplace").split("\n")
    if late.is_set():
        raise OSError(f"{argv[0]} did not end within {timeout:g} s")
    if len(told) > most:
        raise OSError(f"{argv[0]} prints more than {bound(most)}")
    text = told.decode("utf-8", "backslashreplace")
    if status:
        said = next((line.strip()[:_TOLD] for line in (*reversed(lines), *reversed(text.split("\n"))) if line.strip()), "it said nothing")
        raise OSError(f"{argv[0]} {ended(status)}: {said}")  # the last line says what ended it
    return text


def ended(status: int) -> str:
    """How a program ended, by its status: with an error, or by which signal."""
    if status >= 0:
        return f"ended with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _run(argv: Sequence[str], complaints: IO[bytes], timeout: float, most: int) -> tuple[bytes, int, threading.Event]:
    """Its output, exit status, and whether it was killed for being late."""
    late = threading.Event()
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, start_new_session=True) as process:

        def kill() -> None:
            late.set()
            end(process)

        timer = threading.Timer(timeout, kill)
        timer.start()
        try:
            told = process.stdout.read(most + 1) if process.stdout else b""
            if len(told) > most:
                end(process)
            process.wait()
        finally:
            timer.cancel()
    return told, process.returncode, late


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a program that was started in a session of its own, and all that it began.

    A wrapper's child holds the pipe open after the wrapper itself is gone.
    """
    if process.returncode is None:  # not waited for, so that its number is still its own
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
