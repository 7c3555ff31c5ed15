"""A step's figures, taken from what a training script assigned: plain numbers only, anything else is absent."""

from numbers import Integral, Real
from typing import Any, Final, Protocol

_LARGEST: Final = 2**64


class Assigned(Protocol):
    """What a training script may have assigned; anything, since nothing it does may raise."""

    loss: Any
    grad_norm: Any
    flops: Any
    tokens: Any
    samples: Any


def take(step: Assigned) -> tuple[int, float, float, float, int, int]:  # noqa: C901  unrolled: it is in every step
    """The figures in layout.FIGURES' order behind the flags that say which are present; sets them to None."""
    flags = 0
    loss = grad_norm = flops = 0.0
    tokens = samples = 0
    if (real := step.loss) is not None:
        step.loss = None
        if (number := real if type(real) is float else _real(real)) is not None:
            flags, loss = 1, number
    if (real := step.grad_norm) is not None:
        step.grad_norm = None
        if (number := real if type(real) is float else _real(real)) is not None:
            flags, grad_norm = flags | 2, number
    if (real := step.flops) is not None:
        step.flops = None
        if (number := real if type(real) is float else _real(real)) is not None:
            flags, flops = flags | 4, number
    if (whole := step.tokens) is not None:
        step.tokens = None
        if (count := _count(whole)) is not None:
            flags, tokens = flags | 8, count
    if (whole := step.samples) is not None:
        step.samples = None
        if (count := _count(whole)) is not None:
            flags, samples = flags | 16, count
    return flags, loss, grad_norm, flops, tokens, samples


def _real(value: object) -> float | None:
    """A float, where `value` is a number already in this process's memory; NumPy's scalars are."""
    if not isinstance(value, Real):
        return None
    try:
        return float(value)
    except OverflowError:
        return None


def _count(value: object) -> int | None:
    """A count of 0 or more that 64 bits hold."""
    if type(value) is not int:
        if not isinstance(value, Integral) and not (isinstance(value, float) and value.is_integer()):
            return None
        value = int(value)
    return value if 0 <= value < _LARGEST else None
