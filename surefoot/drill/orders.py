"""What a drill asks of its own training, by a file in the training's folder: to be slow, to compute nonsense, to hoard memory.

Standard library only: the trainer reads it in every step, which costs one system call where there is no order.
"""

import json
import os
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

SLOW, NAN, HOARD = "slow", "nan", "hoard"
_ORDER: Final = "order.json"
_BEGUN: Final = "order.begun.json"
_CHUNK: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Order:
    """What rank `rank` is to do: `amount` is seconds a step (slow), bytes (hoard)."""

    what: str
    rank: int
    amount: float = 0.0


@dataclass(frozen=True, slots=True)
class Begun:
    """When, by the rank, and in which step an order was first carried out."""

    at: datetime
    step: int


def give(out: Path, order: Order) -> None:
    """Leave an order for the training whose folder is `out`."""
    _put(out / _ORDER, asdict(order))


def withdraw(out: Path) -> None:
    """The order is no more."""
    (out / _ORDER).unlink(missing_ok=True)


def begun(out: Path) -> Begun | None:
    """Whether the order is being carried out."""
    found = _get(out / _BEGUN)
    return None if found is None else Begun(datetime.fromisoformat(found["at"]), found["step"])


class Figures(Protocol):
    """Numbers that can be set: a flat tensor."""

    def __setitem__(self, place: Any, value: Any, /) -> None: ...


def carry_out(out: Path, rank: int, step: int, figures: Figures) -> float:
    """Do what rank `rank` was told to; gives by how many seconds it is to be late in this step. `figures`: some that it computes with."""
    given = _get(out / _ORDER)
    if given is None or given["rank"] != rank:
        return 0.0
    if not (out / _BEGUN).exists():
        _put(out / _BEGUN, {"at": datetime.now(UTC).isoformat(), "step": step})
    if given["what"] == SLOW:
        return float(given["amount"])
    if given["what"] == NAN:
        figures[0] = float("nan")
    elif given["what"] == HOARD:
        _hoard(int(given["amount"]))
    return 0.0


def _hoard(most: int) -> None:
    """Take memory until the kernel ends this process, but never more than `most` bytes: then hold it for a moment and let it go."""
    hoard = [bytearray(_CHUNK) for _ in range(0, most, _CHUNK)]  # zeroed by hand: each page is really there
    time.sleep(1.0)
    del hoard


def _put(path: Path, value: dict[str, Any]) -> None:
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(value), encoding="utf-8")
    fresh.replace(path)


def _get(path: Path) -> dict[str, Any] | None:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
