"""A stop leaves no descendant, whatever it did to hide or to stay. The processes are real; who is left is asked of /proc."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from exporters.job.procfs import read_stat
from exporters.job.tree import send

MARK = "TEST_MARK"

NASTY = """
import os, signal, subprocess, sys, time
kind, me = sys.argv[1], sys.argv[0]
if kind == "sleep":
    time.sleep(600)
if kind == "deaf":
    for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(n, signal.SIG_IGN)
    time.sleep(600)
if kind == "stopped":
    os.kill(os.getpid(), signal.SIGSTOP)
if kind == "daemon":  # a double fork in sessions of its own
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(0, 3)
    time.sleep(600)
if kind == "hydra":  # starts another for each that dies
    while True:
        subprocess.run([sys.executable, "-S", me, "sleep"], start_new_session=True)
if kind == "all":
    for i in range(2):
        for each in ("sleep", "deaf", "stopped", "daemon", "hydra"):
            subprocess.Popen([sys.executable, "-S", me, each], start_new_session=i == 0)
    print("ready", flush=True)
    time.sleep(600)
"""


def marked(mark: str) -> list[int]:
    """The processes (no zombies) that were started with the mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and f"{MARK}={mark}\0".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("grace", [0.0, 0.4])
@pytest.mark.parametrize("kind", ["stop_run", "restart_run"])
def test_no_descendant_survives_a_stop(launch, plane, script, tmp_path, grace, kind):
    mark = tmp_path.name
    started = launch(*script(NASTY), "all", **{MARK: mark})
    assert started.process.stdout.readline() == b"ready\n"
    old = plane.until(lambda _: len(found := set(marked(mark))) >= 13 and found)
    more = {"new_attempt": "r-2", "launch": 2} if kind == "restart_run" else {}
    action = plane.ask(kind, grace=grace, **more)
    plane.until(lambda p: p.progress(action)[-1:] == ["done"])
    assert not (old - {started.process.pid}) & set(marked(mark))
    if kind == "stop_run":
        started.wait()
        assert marked(mark) == []
    else:
        started.process.send_signal(signal.SIGTERM)
        started.wait()
        assert marked(mark) == []  # nor does anything survive the end of the launcher


DYING = """
import os, sys
import structlog
structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
from exporters.job.launcher import Launcher
from exporters.job.loop import Loop
from pipeline.settings import load

class Dying(Loop):
    def turn(self, seconds):
        if os.path.exists(sys.argv[1]):
            raise SystemExit("this launcher cannot go on")
        super().turn(seconds)

Launcher(load(), sys.argv[2:], "r", None, loop=Dying()).main()
"""


def test_no_descendant_survives_a_launcher_that_can_no_longer_watch(script, tmp_path):
    mark, broken = tmp_path.name, tmp_path / "broken"
    given = {
        "SUREFOOT_INGEST__URL": "http://127.0.0.1:9",
        "SUREFOOT_JOB__CONTROL_TIMEOUT": "0.2",
        "SUREFOOT_STATE_DIR": str(tmp_path / "state"),
        "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
        MARK: mark,
    }
    command = [sys.executable, "-P", "-c", DYING, str(broken), *script(NASTY), "all"]
    with subprocess.Popen(command, env=os.environ | given, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as launcher:
        try:
            assert launcher.stdout is not None
            assert launcher.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 30
            while len(marked(mark)) < 13 and time.monotonic() < deadline:
                time.sleep(0.02)
            broken.touch()
            assert b"cannot go on" in launcher.communicate(timeout=30)[1]
        finally:
            launcher.terminate()
    assert marked(mark) == []


def test_a_signal_is_not_sent_to_a_later_process_with_the_same_pid() -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        stat = read_stat(process.pid)
        assert stat
        send(replace(stat, start=stat.start - 1), signal.SIGKILL)
        time.sleep(0.1)
        assert process.poll() is None
        send(stat, signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    finally:
        process.kill()
        process.wait()
