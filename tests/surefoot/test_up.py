"""`surefoot up`: what cannot start says so in one line, what dies is started again, and Ctrl-C leaves nothing."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from surefoot.drill import stack as stacks


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stacks.Stack]:
    running = stacks.start(tmp_path_factory.mktemp("up"), {})
    yield running
    running.stop()


def surefoot(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "surefoot", *words], capture_output=True, text=True, check=False, timeout=60)


def test_a_taken_port_is_named_with_the_setting_to_change(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = tmp_path / "c.yaml"
        config.write_text(
            f"state_dir: {tmp_path}/s\nring_dir: {tmp_path}/r\ningest: {{port: {port}}}\nstore: {{port: {stacks.free_ports(1)[0]}}}\n"
        )
        done = surefoot("--config", str(config), "up")
    assert done.returncode == 2
    assert done.stderr.strip() == (
        f"surefoot: ingest cannot use 127.0.0.1:{port} (Address already in use): set ingest.port in the settings"
    )


def test_a_second_stack_over_the_same_state_is_refused(stack: stacks.Stack) -> None:
    done = surefoot("--config", str(stack.config), "up")
    assert done.returncode == 2
    assert "another `surefoot up` owns" in done.stderr


@pytest.mark.parametrize("part", ["store", "ingest", "jobs", "agent"])
def test_a_part_that_is_killed_is_started_again(stack: stacks.Stack, part: str) -> None:
    before = stack.part_pid(part)
    os.kill(before, signal.SIGKILL)
    deadline = time.monotonic() + 30
    while stack.part_pid(part) == before:
        assert time.monotonic() < deadline, f"{part} was not started again"
        time.sleep(0.05)
    os.kill(stack.part_pid(part), 0)


def test_its_parts_end_when_it_is_killed_by_force(tmp_path: Path) -> None:
    running = stacks.start(tmp_path / "s", {})
    pids = [p["pid"] for p in stacks.status(running.settings)["parts"].values()]
    running.process.kill()
    running.process.wait()
    deadline = time.monotonic() + 20
    while [p for p in pids if Path(f"/proc/{p}/stat").exists() and " Z " not in Path(f"/proc/{p}/stat").read_text()]:
        assert time.monotonic() < deadline, "parts outlived their supervisor"
        time.sleep(0.1)


def test_an_unknown_setting_stops_the_start(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("detect: {tik: 1}\n")
    done = surefoot("--config", str(config), "up")
    assert (done.returncode, done.stderr.strip()) == (2, "surefoot: unknown setting detect.tik; did you mean tick?")


def test_every_command_has_help_with_an_example() -> None:
    from click.testing import CliRunner

    from surefoot.cli import cli

    for name, command in cli.commands.items():
        text = CliRunner().invoke(cli, [name, "--help"]).output
        assert "Example:" in text, name
        assert (command.help or "").strip(), name


def test_up_tells_its_parts_in_a_file_that_is_never_half_written(stack: stacks.Stack) -> None:
    text = (stack.settings.state_dir / "up.json").read_text()
    assert set(json.loads(text)["parts"]) == {"store", "ingest", "jobs", "agent", "console"}
