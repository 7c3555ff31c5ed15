"""A ring's slots and live cell as records. Pure."""

import math
from collections.abc import Mapping
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from exporters.labels import clean
from exporters.sources.process import Process
from exporters.sources.ring import Header
from pipeline.catalog.events import CHECKPOINT_COMPLETED, PHASE, EventKind
from pipeline.clock import from_micros
from pipeline.errors import InputError
from pipeline.records import Event, Live, Step
from surefoot.hook.layout import (
    CHECKPOINT_RECORD,
    FIGURES,
    KIND_CHECKPOINT,
    KIND_PHASE,
    KIND_STEP,
    PHASE_RECORD,
    PHASES,
    SLOT_HEAD,
    STEP,
    LiveCell,
)

_INTEGRAL: Final = frozenset({"tokens", "samples"})
_EARLIEST, _LATEST = 10**17, 10**19  # 1973 to 2286 in ns
_BIGGEST: Final = 1 << 63


def decode(header: Header, sequence: int, slot: bytes) -> Step | Event:
    """The record that a whole slot holds. Raises InputError naming what cannot be."""
    kind = SLOT_HEAD.unpack_from(slot)[1]
    if kind == KIND_STEP:
        return _step(header, slot)
    if kind == KIND_PHASE:
        return _phase(header, sequence, slot)
    if kind == KIND_CHECKPOINT:
        return _checkpoint(header, sequence, slot)
    raise InputError(f"record {sequence} is of unknown kind {kind}")


def event(header: Header, what: EventKind, name: str, at: datetime, **more: Any) -> Event:
    """An event of the ring's rank. `name` tells it from the rank's other events: the same one has the same id when it is read again."""
    key = f"{header.attempt}\x1f{header.rank}\x1f{header.created}\x1f{what.name}\x1f{name}"
    return Event(
        id=blake2b(key.encode(), digest_size=16).hexdigest(),
        at=at,
        kind=what.name,
        layer=what.layer.value,
        severity=what.severity.value,
        node=header.node,
        run=header.run,
        attempt=header.attempt,
        rank=header.rank,
        **more,
    )


def live(header: Header, cell: LiveCell, process: Process | None, at: datetime, lost: int) -> Live:
    """What the rank is doing at `at`. Raises InputError where the cell's time cannot be."""
    return Live(
        run=header.run,
        attempt=header.attempt,
        node=header.node,
        rank=header.rank,
        at=at,
        pid=header.pid,
        step=cell.step,
        completed=cell.completed,
        phase=cell.phase,
        since=_time(cell.since) if cell.since else None,
        collective=clean(cell.collective),
        process_state=process.state if process else "X",
        cpu_seconds=process.cpu_seconds if process else None,
        overrun=lost,
    )


def _step(header: Header, slot: bytes) -> Step:
    _, _, flags, step, started, ended, *rest = STEP.unpack_from(slot)
    figures, nonfinite = _figures(flags, rest[: len(FIGURES)])
    phases = {name: ns / 1e9 for name, ns in zip(PHASES, rest[len(FIGURES) :], strict=True) if ns}
    return Step(
        run=header.run,
        attempt=header.attempt,
        node=header.node,
        rank=header.rank,
        step=_number(step),
        started_at=_time(started),
        ended_at=_time(ended),
        nonfinite=",".join(nonfinite),
        **phases,
        **figures,
    )


def _figures(flags: int, values: list[float]) -> tuple[Mapping[str, Any], list[str]]:
    """The figures that are present, and the names of those that are no finite number."""
    present = {name: value for i, (name, value) in enumerate(zip(FIGURES, values, strict=True)) if flags >> i & 1}
    nonfinite = [name for name, value in present.items() if not math.isfinite(value)]
    return {name: _number(int(v)) if name in _INTEGRAL else v for name, v in present.items() if name not in nonfinite}, nonfinite


def _phase(header: Header, sequence: int, slot: bytes) -> Event:
    _, _, index, _, started, ended = PHASE_RECORD.unpack_from(slot)
    if index >= len(PHASES) or ended < started:
        raise InputError(f"record {sequence}: phase {index} from {started} to {ended} cannot be")
    return event(header, PHASE, str(sequence), _time(ended), code=PHASES[index], duration=(ended - started) / 1e9)


def _checkpoint(header: Header, sequence: int, slot: bytes) -> Event:
    _, _, _, step, at, size, path = CHECKPOINT_RECORD.unpack_from(slot)
    text = clean(path.rstrip(b"\0").decode("utf-8", "surrogateescape"))
    return event(header, CHECKPOINT_COMPLETED, str(sequence), _time(at), code=str(step), attrs={"path": text, "bytes": str(size)})


def _time(ns: int) -> datetime:
    if not _EARLIEST < ns < _LATEST:
        raise InputError(f"{ns} is not a time in nanoseconds since 1970")
    return from_micros(ns // 1000)


def _number(value: int) -> int:
    if value >= _BIGGEST:
        raise InputError(f"{value} is beyond what can be kept")
    return value
