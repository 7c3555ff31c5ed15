"""The benches, one file each. A name is what `make bench NAME=…` takes."""

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks import agent, gpu, hook, insert, training
from benchmarks.harness import Result

BENCHES: Final[tuple[tuple[str, Callable[[], Iterator[Result]]], ...]] = (
    ("agent", agent.run),
    ("gpu", gpu.run),
    ("hook", hook.run),
    ("insert", insert.run),
    ("training", training.run),
)
