"""`surefoot up`: what cannot start says so in one line, what dies is started again, and Ctrl-C leaves nothing."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipeline.settings import Settings
from pipeline.store import address
from surefoot.drill import stack as stacks
from surefoot.parts import server
from surefoot.up import READY_SECONDS, Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stacks.Stack]:
    running = stacks.start(tmp_path_factory.mktemp("up"), {})
    yield running
    running.stop()


def surefoot(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "surefoot", *words], capture_output=True, text=True, check=False, timeout=60)


def test_every_part_gives_way_to_what_trains_on_the_machine_also_where_sessions_share_the_processor(stack: stacks.Stack) -> None:
    for part in stacks.status(stack.settings)["parts"].values():
        assert os.getpriority(os.PRIO_PROCESS, part["pid"]) >= 10
        group = Path(f"/proc/{part['pid']}/autogroup")
        if group.exists():
            assert group.read_text().endswith(" nice 10\n")


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


@pytest.mark.parametrize("host", ["192.0.2.7", "nobody-of-that-name.invalid"])  # TEST-NET-1, and a name that never is one
def test_an_address_that_this_machine_does_not_have_is_blamed_on_the_host_and_not_on_the_port(tmp_path: Path, host: str) -> None:
    config = tmp_path / "c.yaml"
    ports = stacks.free_ports(4)
    config.write_text(
        f"state_dir: {tmp_path}/s\nring_dir: {tmp_path}/r\nstore: {{port: {ports[0]}}}\ningest: {{port: {ports[1]}}}\n"
        f"agent: {{port: {ports[2]}}}\nconsole: {{port: {ports[3]}, host: {host}}}\n"
    )
    done = surefoot("--config", str(config), "up")
    assert done.returncode == 2
    told = rf"surefoot: console cannot use {host}:{ports[3]} \([^)]+\): set console\.host in the settings\n"
    assert re.fullmatch(told, done.stderr), done.stderr


def test_an_interrupt_while_the_store_comes_up_starts_no_other_part(tmp_path: Path) -> None:
    ports = stacks.free_ports(4)
    config = tmp_path / "c.yaml"
    config.write_text(
        f"state_dir: {tmp_path}/s\nring_dir: {tmp_path}/r\nstore: {{port: {ports[0]}}}\ningest: {{port: {ports[1]}}}\n"
        f"agent: {{port: {ports[2]}}}\nconsole: {{port: {ports[3]}}}\n"
    )
    argv = [sys.executable, "-P", "-m", "surefoot", "--config", str(config), "up"]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE, text=True)
    assert process.stderr
    first = process.stderr.readline()
    assert "part=store" in first
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert (process.returncode, rest) == (0, "")
    assert [p.name for p in (tmp_path / "s/logs").iterdir()] == ["store.log"]


def test_a_store_elsewhere_that_does_not_answer_is_told_once_and_waited_for(tmp_path: Path) -> None:
    ports = stacks.free_ports(4)
    there = tmp_path / "there.yaml"
    there.write_text(f"state_dir: {tmp_path}/there\nstore: {{port: {ports[0]}, password: s3cret}}\n")
    here = tmp_path / "here.yaml"
    here.write_text(
        f"state_dir: {tmp_path}/s\nring_dir: {tmp_path}/r\nclickhouse_url: http://default:s3cret@127.0.0.1:{ports[0]}/\n"
        f"ingest: {{port: {ports[1]}}}\nagent: {{port: {ports[2]}}}\nconsole: {{port: {ports[3]}}}\n"
    )
    started = []
    try:
        with (tmp_path / "told").open("wb") as out:
            for config, command in ((here, "up"), (there, "store")):
                argv = [sys.executable, "-P", "-m", "surefoot", "--config", str(config), command]
                started.append(subprocess.Popen(argv, stderr=out if command == "up" else subprocess.DEVNULL))
                words = "does not answer" if command == "up" else "event=ready"
                deadline = time.monotonic() + 60
                while words not in (told := (tmp_path / "told").read_text()):
                    assert started[0].poll() is None and time.monotonic() < deadline, told
                    time.sleep(0.1)
                assert ("event=ready" in told) == (command == "store")
                time.sleep(1.0)
    finally:
        for process in started:
            process.terminate()
        codes = [process.wait(60) for process in started]
    told = (tmp_path / "told").read_text()
    (line,) = [line for line in told.splitlines() if "does not answer" in line]
    assert "level=warning" in line and f"store=http://127.0.0.1:{ports[0]}" in line
    assert "s3cret" not in told
    assert codes == [0, 0]


def test_a_store_elsewhere_that_never_answers_does_not_end_the_stack(tmp_path: Path) -> None:
    settings = Settings(state_dir=tmp_path, clickhouse_url="http://127.0.0.1:9")  # nobody listens on the discard port
    stack = Stack(settings, away=server(settings))
    stack.greet(stack.began + 100 * READY_SECONDS)
    assert not stack.ready


@pytest.mark.parametrize(
    "url", ["http://clickhouse", "https://clickhouse", "http://u:p@clickhouse:81/", "https://[::1]:8443", "http://[::1]"]
)
def test_the_store_elsewhere_is_looked_for_where_the_parts_look_for_it(url: str) -> None:
    settings = Settings(clickhouse_url=url)
    where = address(settings)
    found = server(settings)
    assert found
    seen = urlsplit(found.health)
    assert (seen.scheme, seen.hostname, seen.port, seen.path) == (where["interface"], where["host"], where["port"], "/ping")
    assert found.name == found.health.removesuffix("/ping") and "p@" not in found.name


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
