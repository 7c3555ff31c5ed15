"""The benches, one file each. A name is what `make bench NAME=…` takes."""

from collections.abc import Callable, Iterator
from typing import Final

from benchmarks import hook, insert, training
from benchmarks.harness import Result

BENCHES: Final[tuple[tuple[str, Callable[[], Iterator[Result]]], ...]] = (
    ("hook", hook.run),
    ("insert", insert.run),
    ("training", training.run),
)
