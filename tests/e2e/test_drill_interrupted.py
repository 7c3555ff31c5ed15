"""A drill or demo that is interrupted, whenever and however often, stops what it started, waits for it and leaves no folder."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from surefoot.drill.stack import free_ports

PATIENCE = 90.0  # seconds; a ceiling, not an expectation
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts `surefoot` with its output in `out`, and `tmp_path`/tmp as the folder for temporary files of all that it starts."""
    made: list[subprocess.Popen[bytes]] = []
    (tmp_path / "tmp").mkdir()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a child of who was started with nohup would not hear it
    bare = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}

    def run(*words: str, **environment: str) -> subprocess.Popen[bytes]:
        env = {**bare, "TMPDIR": str(tmp_path / "tmp"), **environment}
        argv = [sys.executable, "-P", "-u", "-m", "surefoot", "--log-level", "warning", *words]
        with (tmp_path / "out").open("wb") as out:
            made.append(subprocess.Popen(argv, stdout=out, stderr=subprocess.STDOUT, env=env, start_new_session=True))
        return made[-1]

    yield run
    signal.signal(signal.SIGHUP, before)
    for process in made:
        if process.poll() is None:
            process.kill()
            process.wait()


def until_told(tmp_path: Path, words: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while words not in (tmp_path / "out").read_text():
        assert process.poll() is None and time.monotonic() < deadline, (tmp_path / "out").read_text()
        time.sleep(0.05)


def assert_all_is_gone(tmp_path: Path) -> None:
    """No folder, and no process that was started with ours as the folder for temporary files."""
    assert list((tmp_path / "tmp").iterdir()) == []
    left = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(tmp_path).encode() in (process / "environ").read_bytes():
                left.append((process / "cmdline").read_bytes())
        except OSError:
            continue
    assert left == []


@pytest.mark.parametrize(
    ("words", "moment", "number"),
    [
        ("drill kill", "starting a stack", signal.SIGINT),
        ("drill kill", "training 2 ranks", signal.SIGTERM),
        pytest.param("drill hang", "injected", signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param("drill kill", "waiting for the training", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("demo", "console:", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("demo", "starting Surefoot", signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_signal_and_a_second_one_end_it_and_nothing_is_left(
    tmp_path: Path, start: Start, words: str, moment: str, number: signal.Signals
) -> None:
    process = start(*words.split(), SUREFOOT_CONSOLE__PORT=str(free_ports(1)[0]))
    until_told(tmp_path, moment, process)
    time.sleep(0.6)
    process.send_signal(number)
    time.sleep(0.3)
    if process.poll() is None:
        process.send_signal(number)
    assert process.wait(PATIENCE) == 128 + number
    assert_all_is_gone(tmp_path)
    told = (tmp_path / "out").read_text()
    assert "Traceback" not in told
    assert told.splitlines()[-1] == "stopping"


def test_a_demo_whose_console_port_is_taken_says_so_and_names_nothing_that_is_gone(tmp_path: Path, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert start("demo", SUREFOOT_CONSOLE__PORT=str(port)).wait(PATIENCE) == 2
    assert (tmp_path / "out").read_text().splitlines()[-1] == (
        f"surefoot: the stack did not start: console cannot use 127.0.0.1:{port} (Address already in use): set console.port in the settings"
    )
    assert_all_is_gone(tmp_path)


@pytest.mark.slow
def test_a_restart_that_nobody_approves_ends_the_drill_at_its_timeout_and_is_called_that(tmp_path: Path, start: Start) -> None:
    process = start("drill", "kill", "--mode", "approve", "--timeout", "20")
    until_told(tmp_path, "not mended in 20 s", process)
    stopping = time.monotonic()
    assert process.wait(PATIENCE) == 1
    assert time.monotonic() - stopping < 25, "the training and the stack are stopped at once"
    told = (tmp_path / "out").read_text().splitlines()
    assert [line for line in told if line.startswith("WRONG")] == ["WRONG: nobody approved the restart within 20 s"]
    assert_all_is_gone(tmp_path)
