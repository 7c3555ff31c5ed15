"""`StepMonitor`: a training script tells it its steps and phases; the node's agent reads them from a ring.

It never raises into the training, never waits and starts no thread. Where it cannot write (no attempt in the
environment, no ring, a forked child), the same calls write into memory that nobody reads, and `reason` says why.
"""

import os
import sys
import threading
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from time import perf_counter_ns, time_ns
from typing import Final

from surefoot.hook import checkpoint, environment
from surefoot.hook.layout import ENV_RESUME_FROM, PHASES
from surefoot.hook.ring import RingWriter
from surefoot.hook.track import Collective, Phase, Step, Track

_NAMES_KEPT: Final = 256  # collectives' names: more than any training has, and a bound


class StepMonitor:
    """Tells the node's agent what this rank does. From one thread, but for `checkpoint_complete`.

        monitor = StepMonitor()
        for number, batch in enumerate(batches):
            with monitor.step(number) as step:
                with monitor.phase("forward"):
                    loss = model(batch)
                step.loss = loss.item()

    `active` is False where nothing is recorded, `reason` says why. Phases are those of layout.PHASES.
    """

    def __init__(self) -> None:
        created, wall = perf_counter_ns(), time_ns()
        writer, reason = _open(wall)
        self._begin(Track(writer, created, wall), reason)

    def _begin(self, track: Track, reason: str) -> None:
        self.reason = reason
        self._track = track
        self._one_step = Step(track)
        self._phases = {name: Phase(track, index) for index, name in enumerate(PHASES)}
        self._collectives: dict[str, Phase] = {}
        self._thread = threading.get_ident()
        self._later: deque[tuple[int, int, int, str]] = deque(maxlen=16)  # checkpoints that another thread completed

    @property
    def active(self) -> bool:
        """Is anything recorded?"""
        return self._track.writer.mapped

    @property
    def errors(self) -> int:
        """Calls that could not be recorded, by misuse or trouble."""
        return self._track.errors

    @property
    def resume_from(self) -> str | None:
        """The folder of the newest verified checkpoint, where the launcher named one."""
        return os.environ.get(ENV_RESUME_FROM) or None

    def step(self, number: int) -> Step:
        """`with` it around step `number`. A step that ends by an exception is not recorded as completed."""
        self._one_step.number = number
        if self._later:
            self._write_later()
        return self._one_step

    def phase(self, name: str) -> AbstractContextManager[None]:
        """`with` it around a phase, in a step or outside. An unknown name is counted in `errors` and records nothing."""
        try:
            phase = self._phases[name]
            return Phase(self._track, phase.index) if phase.began else phase  # began: it is open further out
        except (KeyError, TypeError):
            self._track.errors += 1
            return nullcontext()

    def collective(self, name: str) -> AbstractContextManager[None]:
        """`with` it around a collective operation: the phase comm_wait, with the operation's name for who looks on."""
        try:
            known = self._collectives.get(name)
            if known is not None and not known.began:
                return known
            fresh = Collective(self._track, name)
            if known is None and len(self._collectives) < _NAMES_KEPT:
                self._collectives[name] = fresh
            return fresh
        except Exception:  # noqa: BLE001  rule 16: nothing may reach the training
            self._track.errors += 1
            return self._phases["comm_wait"]

    def checkpoint_complete(self, directory: str | os.PathLike[str], step: int) -> bool:
        """Mark the checkpoint of `step` in `directory` as complete: on one rank, after all its files are durable.

        A restart resumes from marked checkpoints only. Written with or without a ring. False where it failed.
        """
        try:
            size = checkpoint.complete(Path(directory), step)
            self._later.append((step, time_ns(), size, os.fspath(directory)))
            if threading.get_ident() == self._thread:
                self._write_later()
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1
            return False
        return True

    def _write_later(self) -> None:
        try:
            while self._later:
                self._track.writer.checkpoint(*self._later.popleft())
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1

    def close(self) -> None:
        """Say that the training ended in good order; what comes after is not recorded."""
        try:
            self._write_later()
            writer = self._track.writer
            if writer.mapped:
                writer.close(perf_counter_ns() + self._track.to_wall)
                self._track.forget()
                self.reason = "closed"
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1

    def __reduce__(self) -> tuple[type["_Elsewhere"], tuple[()]]:
        return _Elsewhere, ()


class _Elsewhere(StepMonitor):
    """What a monitor becomes where it is copied or sent to another process: one that records nothing."""

    def __init__(self) -> None:
        self._begin(Track(RingWriter(), 0, 0), "a copy records nothing")


def _open(created: int) -> tuple[RingWriter, str]:
    """A writer of this process's ring and "", else one that writes nowhere and why."""
    try:
        reason = environment.why_off(os.environ)
        if not reason:
            who = environment.identity(os.environ, os.uname().nodename, created)
            return RingWriter.create(environment.ring_dir(os.environ), who), ""
    except Exception as e:  # noqa: BLE001  rule 16
        reason = f"no ring: {e}"
        _say(f"surefoot: the training runs on without telemetry: {reason}")
    return RingWriter(), reason


def _say(line: str) -> None:
    """To standard error, if there is one; not `warnings`, which -W error makes raise."""
    try:
        sys.stderr.write(line + "\n")
    except Exception:  # noqa: BLE001  rule 16
        return
