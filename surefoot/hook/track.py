"""Where one rank is: its step, its phases, its collectives. The hot path: it runs in every training step.

Nothing here may raise into the training (rule 16), so each call ends in a catch-all that counts.
"""

import os
import weakref
from collections.abc import Callable
from time import perf_counter_ns
from types import TracebackType
from typing import Final

from surefoot.hook.figures import take
from surefoot.hook.layout import (
    BASE_WORD_OFFSET,
    DONE_WORD_OFFSET,
    NO_PHASE,
    PHASE_WORD_OFFSET,
    PHASES,
    SINCE_WORD_OFFSET,
    STEP_WORD_OFFSET,
)
from surefoot.hook.ring import RingWriter

_STEP_WORD: Final = STEP_WORD_OFFSET // 8
_DONE_WORD: Final = DONE_WORD_OFFSET // 8
_SINCE_WORD: Final = SINCE_WORD_OFFSET // 8
_PHASE_WORD: Final = PHASE_WORD_OFFSET // 8
_BASE_WORD: Final = BASE_WORD_OFFSET // 8
_NO_TIME: Final = [0] * len(PHASES)
# All that happens inside one of these belongs to it: the forward pass of an eval is eval.
_WHOLE: Final = frozenset(PHASES.index(name) for name in ("init", "load_checkpoint", "compile", "checkpoint", "eval"))


class Track:
    """Where the rank is: shared by the step, the phases and the collectives of one monitor.

    Times are ns of a monotonic clock; plus `to_wall` they are ns since 1970. `owner` is the phase to which all inside it
    belongs: a whole one in a step, the outermost one outside. `plain`: in a step, and nobody owns.
    """

    __slots__ = (
        "__weakref__",
        "began",
        "clock",
        "current",
        "errors",
        "in_step",
        "owner",
        "plain",
        "spent",
        "step",
        "to_wall",
        "touched",
        "words",
        "writer",
    )

    def __init__(self, writer: RingWriter, created: int, wall: int, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.clock = clock
        self.to_wall = wall - created
        self.current = NO_PHASE
        self.owner: Phase | None = None
        self.spent = list(_NO_TIME)
        self.touched = self.in_step = self.plain = False
        self.began = created
        self.step = self.errors = 0
        self.writer = writer
        self.words = writer.words
        self.words[_BASE_WORD] = self.words[_SINCE_WORD] = created
        self.words[_PHASE_WORD] = NO_PHASE
        _tracks.add(self)

    def forget(self) -> None:
        """From now on nothing is recorded: the same calls write into memory that nobody reads."""
        self.writer.forget()
        self.words = self.writer.words


class Phase:
    """`with` it, as often as wanted: the time inside goes to its phase, less the time in phases inside it."""

    __slots__ = ("_before", "_track", "_whole", "began", "index")

    def __init__(self, track: Track, index: int) -> None:
        self._track = track
        self.index = index
        self._whole = index in _WHOLE
        self._before = NO_PHASE
        self.began = 0  # 0: not entered

    def __enter__(self) -> None:
        try:
            t = self._track
            self._before = t.current
            t.words[_SINCE_WORD] = self.began = t.clock()
            if t.plain and not self._whole:
                t.words[_PHASE_WORD] = t.current = self.index
                t.touched = True
            else:
                self._enter_owned(t)
        except Exception:  # noqa: BLE001  rule 16: nothing may reach the training
            self._track.errors += 1

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            t = self._track
            began = self.began
            if not began:
                raise RuntimeError("a phase was entered again while it was open")
            t.words[_SINCE_WORD] = now = t.clock()
            t.words[_PHASE_WORD] = t.current = before = self._before
            if t.plain:
                t.spent[self.index] += now - began
                if before != NO_PHASE:
                    t.spent[before] -= now - began
            elif t.owner is self:
                self._leave(t, now)
            self.began = 0
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1

    def _enter_owned(self, t: Track) -> None:
        """Outside a step, or a whole phase, or inside one."""
        if t.owner is not None and t.owner._whole:
            return
        t.words[_PHASE_WORD] = t.current = self.index
        if t.owner is None:
            t.owner = self
            t.plain = False

    def _leave(self, t: Track, now: int) -> None:
        t.owner = None
        if not t.in_step:
            t.writer.phase(self.index, t.step, self.began + t.to_wall, now + t.to_wall)
            return
        t.plain = t.touched = True
        t.spent[self.index] += now - self.began
        if self._before != NO_PHASE:
            t.spent[self._before] -= now - self.began


class Collective(Phase):
    """A phase `comm_wait` that names what is waited for."""

    __slots__ = ("_name",)

    def __init__(self, track: Track, name: str) -> None:
        super().__init__(track, PHASES.index("comm_wait"))
        self._name = name.encode("utf-8", "replace")

    def __enter__(self) -> None:
        super().__enter__()
        try:
            t = self._track
            t.writer.collective(t.step, t.words[_DONE_WORD], self.began, t.current, self._name)
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1


class Step:
    """One step: set any of `loss`, `grad_norm`, `flops`, `tokens`, `samples` to a plain number inside it.

    Anything else, such as a tensor, is left out: reading it could wait for a GPU. No __slots__: a
    misspelt figure must not raise either. One object serves every step.
    """

    def __init__(self, track: Track) -> None:
        self._track = track
        self.number: int = 0
        self.loss: float | None = None
        self.grad_norm: float | None = None
        self.flops: float | None = None
        self.tokens: int | None = None
        self.samples: int | None = None

    def __enter__(self) -> "Step":
        try:
            t = self._track
            t.in_step = False  # stays so when the number below is refused
            words = t.words
            words[_SINCE_WORD] = t.began = t.clock()
            words[_STEP_WORD] = t.step = self.number + 1
            if t.current != NO_PHASE:
                words[_PHASE_WORD] = t.current = NO_PHASE
            if t.touched:
                t.spent[:] = _NO_TIME
                t.touched = False
            t.owner = None
            t.in_step = t.plain = True
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            t = self._track
            now = t.clock()
            flags, loss, grad_norm, flops, tokens, samples = take(self)  # always: none may be left for the next step
            if not t.in_step:
                return  # refused at its beginning, or ended by a step inside it
            t.in_step = t.plain = False
            words = t.words
            words[_SINCE_WORD] = now
            if t.current != NO_PHASE:
                words[_PHASE_WORD] = t.current = NO_PHASE
            if kind is None:
                words[_DONE_WORD] = t.step
                wall = t.to_wall
                phases = t.spent if t.touched else None
                t.writer.step(t.step - 1, t.began + wall, now + wall, phases, flags, loss, grad_norm, flops, tokens, samples)
        except Exception:  # noqa: BLE001  rule 16
            self._track.errors += 1


_tracks: "weakref.WeakSet[Track]" = weakref.WeakSet()


def _forget_all() -> None:
    """In a forked child: the rings belong to the parent."""
    for track in list(_tracks):
        track.forget()


os.register_at_fork(after_in_child=_forget_all)
