"""Signals are noted when they come and heeded where that is asked for; a second one changes nothing; an early Ctrl-C is quiet."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surefoot.signals import ENDING, Interrupted, Signals

NUMBERS = pytest.mark.parametrize("number", ENDING, ids=lambda n: n.name)


@NUMBERS
def test_a_signal_is_heeded_at_the_next_pause_and_not_before(number: signal.Signals) -> None:
    said: list[str] = []
    with Signals(lambda: said.append("stopping")) as signals:
        signals.pause(0)
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        done = "everything in between"
        with pytest.raises(Interrupted) as caught:
            signals.pause(60)
    assert (caught.value.code, said, done) == (128 + number, ["stopping"], "everything in between")


@NUMBERS
def test_a_wait_ends_at_once_when_a_signal_comes(number: signal.Signals) -> None:
    with Signals() as signals:
        began = time.monotonic()
        subprocess.Popen(["sh", "-c", f"sleep 0.1; kill -{int(number)} {os.getpid()}"]).wait()
        assert signals.wait(60)
        assert time.monotonic() - began < 10


def test_without_a_signal_a_wait_takes_its_time() -> None:
    with Signals() as signals:
        began = time.monotonic()
        assert not signals.wait(0.05)
        assert time.monotonic() - began >= 0.05


def test_what_was_ignored_stays_ignored_and_what_was_handled_is_handled_so_again() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Signals() as signals:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not signals.wait(0.01)
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("words", "imported"),
    [("surefoot up", "surefoot.own"), ("surefoot agent --once", "surefoot.cli"), ("surefoot.quietly streamlit --version", "streamlit")],
)
def test_an_interrupt_in_the_middle_of_the_imports_ends_a_command_with_130_and_no_traceback(
    tmp_path: Path, words: str, imported: str
) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SUREFOOT_STATE_DIR": str(tmp_path)}
    argv = [sys.executable, "-P", "-X", "importtime", "-m", *words.split()]
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stderr
    fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)  # so little is it ahead of us: it still imports when the signal comes
    for line in process.stderr:
        if line.rstrip().endswith(imported) or f" {imported}." in line:
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert [line for line in rest.splitlines() if not line.startswith("import time:")] == []


def test_an_ignored_interrupt_stays_ignored_by_a_command_in_the_background(tmp_path: Path) -> None:
    script = "import os, signal; from surefoot.entry import interrupt_quietly; interrupt_quietly(); os.kill(os.getpid(), signal.SIGINT)"
    ignoring = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]
    assert subprocess.run([*ignoring, sys.executable, "-c", script], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 130
