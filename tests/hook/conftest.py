"""A trainer's environment with a ring folder of its own, and a reading of its rings by the layout alone."""

import os
import subprocess
import sys
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from surefoot.hook import layout

ALL_OURS = ("SUREFOOT_", "RANK", "LOCAL_RANK", "WORLD_SIZE", "SLURM_", "OMPI_", "TORCHELASTIC_")


@dataclass(frozen=True)
class Rings:
    """The rings of attempt `run-1` in `folder`, written by processes with `environ`."""

    folder: Path
    environ: dict[str, str]

    def path(self, name: str = "run-1.0") -> Path:
        return self.folder / f"{name}.ring"

    def records(self, name: str = "run-1.0") -> list[dict[str, Any]]:
        """Every record still there, oldest first; a damaged slot is a failure."""
        data = self.path(name).read_bytes()
        written = int.from_bytes(data[layout.WRITTEN_OFFSET :][:8], "little")
        return [_record(data, n) for n in range(max(0, written - layout.CAPACITY), written)]

    def live(self, name: str = "run-1.0") -> layout.LiveCell | None:
        return layout.read_live(self.path(name).read_bytes())

    def run(self, script: str, *, cwd: Path | None = None, **environ: str) -> subprocess.CompletedProcess[str]:
        """`script` in a Python of its own, with warnings as errors."""
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
        env = {**self.environ, **environ}
        return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def _record(data: bytes, number: int) -> dict[str, Any]:
    at = layout.HEADER_SIZE + number % layout.CAPACITY * layout.SLOT_SIZE
    slot = data[at : at + layout.SLOT_SIZE]
    assert layout.CRC.unpack_from(slot, layout.CRC_OFFSET)[0] == zlib.crc32(slot[: layout.CRC_OFFSET])
    sequence, kind, flags = layout.SLOT_HEAD.unpack_from(slot)
    assert sequence == number + 1
    if kind == layout.KIND_STEP:
        _, _, _, step, started, ended, *rest = layout.STEP.unpack_from(slot)
        figures = {name: rest[i] for i, name in enumerate(layout.FIGURES) if flags >> i & 1}
        phases = {name: ns for name, ns in zip(layout.PHASES, rest[5:], strict=True) if ns}
        return {"kind": "step", "step": step, "started": started, "ended": ended, "phases": phases, **figures}
    if kind == layout.KIND_PHASE:
        _, _, phase, after, started, ended = layout.PHASE_RECORD.unpack_from(slot)
        return {"kind": "phase", "phase": layout.PHASES[phase], "after": after, "started": started, "ended": ended}
    assert kind == layout.KIND_CHECKPOINT
    *_, step, at_ns, size, path = layout.CHECKPOINT_RECORD.unpack_from(slot)
    return {"kind": "checkpoint", "step": step, "at": at_ns, "bytes": size, "path": path.rstrip(b"\0").decode()}


@pytest.fixture
def rings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rings:
    """This process is rank 0 of attempt run-1, and so are the scripts that `run` starts."""
    for name in [n for n in os.environ if n.startswith(ALL_OURS)]:
        monkeypatch.delenv(name)
    mine = {
        layout.ENV_RUN: "run",
        layout.ENV_ATTEMPT: "run-1",
        layout.ENV_NODE: "N1",
        layout.ENV_RING_DIR: str(tmp_path / "rings"),
    }
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    return Rings(tmp_path / "rings", dict(os.environ))


@pytest.fixture
def inert_without() -> Callable[[Any], None]:
    """Uses every call of a monitor, the wrong ways included; nothing may come out of it."""

    def use(monitor: Any) -> None:
        class Waits:
            def __float__(self) -> float:
                raise RuntimeError("a device would be waited for")

        for number in (0, None, "three", -5, 2**70, 1.5):
            with monitor.step(number) as step:
                with monitor.phase("data"), monitor.phase("data"), monitor.collective("all_reduce"):
                    pass
                with monitor.phase("no such phase"), monitor.phase(["unhashable"]), monitor.collective(None):
                    pass
                step.loss = Waits()
                step.tokens = -1
                step.no_such_figure = 3
        with monitor.step(1), monitor.step(2), monitor.phase("forward"):
            pass
        monitor.checkpoint_complete("/no/such/folder", 3)
        monitor.checkpoint_complete(None, None)
        monitor.close()
        monitor.close()
        with monitor.step(3), monitor.phase("forward"):
            pass

    return use
