"""Output that cannot be written is an error in one line, and a reader who has gone a quiet end: of every command alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

BUFFERED = ("", "1")  # PYTHONUNBUFFERED
COMMANDS = ("agent --once", "agent --once --json", "doctor", "doctor --coverage", "actions --help", "--version")


def environment(folder: Path, unbuffered: str) -> dict[str, str]:
    return os.environ | {
        "PYTHONUNBUFFERED": unbuffered,
        "SUREFOOT_STATE_DIR": str(folder / "state"),
        "SUREFOOT_RING_DIR": str(folder / "rings"),
    }


def surefoot(words: str) -> list[str]:
    return [sys.executable, "-P", "-m", "surefoot", "--log-level", "error", *words.split()]


def run(words: str, folder: Path, unbuffered: str, out: int) -> tuple[int, str]:
    """Exit code, and what it said on standard error."""
    env = environment(folder, unbuffered)
    done = subprocess.run(surefoot(words), env=env, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.parametrize("unbuffered", BUFFERED)
@pytest.mark.parametrize("words", COMMANDS)
def test_a_full_disk_is_named_and_no_command_succeeds_on_it(words: str, unbuffered: str, tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        said = run(words, tmp_path, unbuffered, full.fileno())
    assert said == (2, "surefoot: cannot write what is to be printed: No space left on device\n")


@pytest.mark.parametrize("unbuffered", BUFFERED)
@pytest.mark.parametrize("words", [*COMMANDS, "agent --dry-run"])
def test_a_reader_who_has_gone_ends_it_quietly(words: str, unbuffered: str, tmp_path: Path) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        said = run(words, tmp_path, unbuffered, writes)
    finally:
        os.close(writes)
    assert said == (1, "")
