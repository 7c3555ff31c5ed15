"""What a detector says."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pipeline.catalog.faults import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A fault is there. `key` is detector, entity and run, and holds no measured value: it finds the open finding.

    `onset` is when the fault began, as far as the evidence shows. `rank` is None where no single rank can be named.
    `beside` are the runs on its node: it may join an incident of one of them. `located`: the place is known, also without a rank.
    `under` are the runs whose checkpoints lie on it.
    `happened` is when the newest event came that shows it, None where it is no event: one from before its finding was cleared is told.
    """

    key: str
    detector: str
    fault: Fault
    run: str
    attempt: str
    reason: str
    onset: datetime
    node: str = ""
    rank: int | None = None
    device: str = ""
    confidence: float = 1.0
    evidence: Mapping[str, Any] = field(default_factory=dict)
    beside: frozenset[str] = frozenset()
    under: frozenset[str] = frozenset()
    located: bool = False
    happened: datetime | None = None


def key_of(detector: str, entity: str, run: str) -> str:
    """The key of a finding."""
    return f"{detector}|{entity}|{run}"
