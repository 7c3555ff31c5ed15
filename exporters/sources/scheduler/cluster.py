"""What a scheduler says of nodes and jobs, whichever scheduler it is."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SchedNode:
    """A node. `ready` None: nothing is said of it, as it is off, being started or in maintenance. `bad` holds the conditions that are
    not as they should be, with their reason. GPUs that can be given out, and those that are."""

    name: str
    ready: bool | None
    schedulable: bool | None
    gpus: int | None = None
    gpus_used: int | None = None
    bad: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SchedJob:
    """A job of Slurm, or a pod (`namespace/name`) that has GPUs or belongs to a run. `id` is never given twice.

    `unplaced_since`: since when it has been waiting for a place that it had before, or that no node can give it; None where it does not.
    `lost` says why its place was taken from it, "" where it was not, and `lost_at` when, None where that is not known. `starts` is how
    often it was begun again. Times are seconds since 1970.
    """

    id: str
    name: str
    running: bool
    unplaced_since: float | None = None
    nodes: tuple[str, ...] = ()
    gpus: int | None = None
    starts: int | None = None
    run: str = ""
    lost: str = ""
    lost_at: float | None = None
    reason: str = ""
