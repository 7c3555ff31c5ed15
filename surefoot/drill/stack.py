"""A Surefoot of the drill's own: free ports, a folder of its own, started as `surefoot up` and stopped again."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pipeline.settings import Settings, load
from surefoot.drill.plan import NotCarriedOut, Pause
from surefoot.part_logs import last_line

READY_SECONDS = 90.0
_PORTS = frozenset(range(10_000, 65_536))
STOP_SECONDS = 60.0  # more than `surefoot up` takes to kill parts that do not stop


@dataclass(frozen=True, slots=True)
class Stack:
    """A running stack. `config` is its settings file, `folder` holds its state and logs."""

    process: subprocess.Popen[bytes]
    settings: Settings
    config: Path
    folder: Path

    def part_pid(self, name: str) -> int:
        """The process id of a part now."""
        return int(status(self.settings)["parts"][name]["pid"])

    def stop(self) -> None:
        """Stop it and wait until nothing of it is left."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its parts end with it
            self.process.wait()


def status(settings: Settings) -> dict[str, Any]:
    """What `surefoot up` says of itself; {} while it has said nothing yet."""
    try:
        return dict(json.loads((settings.state_dir / "up.json").read_text(encoding="utf-8")))
    except OSError:
        return {}


@contextmanager
def running(folder: Path, extra: dict[str, Any], pause: Pause) -> Iterator[Stack]:
    """As `start`; the stack is stopped with the block."""
    stack = start(folder, extra, pause)
    try:
        yield stack
    finally:
        stack.stop()


def start(folder: Path, extra: dict[str, Any], pause: Pause = time.sleep) -> Stack:
    """Start a stack in `folder` with the settings `extra` over the drill's own, and wait until it is ready.

    Raises NotCarriedOut with its last words where it does not become ready, and what `pause` raises; then nothing of it runs.
    """
    pause(0)
    (folder / "tmp").mkdir(parents=True, exist_ok=True)  # the database's engine, stopped while it starts, leaves a folder there
    config = folder / "surefoot.yaml"
    config.write_text(yaml.safe_dump(merged(_own_settings(folder), extra)), encoding="utf-8")
    settings = load(config)
    with (folder / "up.log").open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "surefoot", "--config", str(config), "--parent", str(os.getpid()), "up"],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder / "tmp")},
            start_new_session=True,
        )
    stack = Stack(process, settings, config, folder)
    try:
        _await_ready(stack, pause)
    except BaseException:
        stack.stop()
        raise
    return stack


def _await_ready(stack: Stack, pause: Pause) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not status(stack.settings).get("ready"):
        if stack.process.poll() is not None or time.monotonic() > deadline:
            told = last_line(stack.folder / "up.log").removeprefix("surefoot: ")
            raise NotCarriedOut(f"the stack did not start: {told or 'it said nothing'}")
        pause(0.1)


def _own_settings(folder: Path) -> dict[str, Any]:
    ports = free_ports(4)
    return {
        "cluster": "drill",
        "state_dir": str(folder / "state"),
        "ring_dir": str(folder / "rings"),
        "store": {"port": ports[0]},
        "ingest": {"port": ports[1]},
        "agent": {"port": ports[2]},
        "console": {"port": ports[3]},
        "detect": {"settle": 0},  # what a drill has mended does not come back
    }


def merged(own: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """`own` with what `extra` says; of a part that both speak of, what `extra` leaves open stays."""
    both = {key: {**own[key], **value} for key, value in extra.items() if isinstance(value, dict) and isinstance(own.get(key), dict)}
    return {**own, **extra, **both}


def free_ports(count: int) -> list[int]:
    """`count` different ports on loopback that nobody uses now, none of which the system gives to a connection before they are used."""
    candidates = list(_PORTS - _given_by_the_system() or _PORTS)
    random.shuffle(candidates)
    found: list[int] = []
    while len(found) < count:
        port = candidates.pop()
        with socket.socket() as s, suppress(OSError):
            s.bind(("127.0.0.1", port))
            found.append(port)
    return found


def _given_by_the_system() -> set[int]:
    """The ports that outgoing connections get by themselves."""
    try:
        first, last = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        first, last = 32768, 60999  # Linux's own default
    return set(range(first, last + 1))
