"""What a collector is and what it gives."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, runtime_checkable

from exporters.sources.storage import mounts
from exporters.sources.storage.kubelet import Door, ask
from exporters.sources.storage.mounts import Probes
from exporters.sources.storage.probes import Quotas, Smart, Usage, Written, statvfs
from pipeline.catalog.metrics import Family
from pipeline.records import Event
from pipeline.settings import AgentSettings

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Reading(NamedTuple):
    """One device at one time. `identity` has the keys of `family.identity`; `values` are by metric name, None is absent;
    `attributes` say more about the device; `since` is when its counters began, seconds since 1970."""

    family: Family
    identity: Mapping[str, str]
    values: Mapping[str, float | int | None]
    attributes: Mapping[str, str] = _NOTHING
    since: float | None = None


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value of a series that the catalogue does not know, under the name and labels that it was given. `value` None: the series has
    ended. `since` is when a counter began, seconds since 1970, None where that is not known."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float | None
    counter: bool = False
    since: float | None = None


class Table(NamedTuple):
    """Many devices of one family at one time, as columns: the same as a Reading each, for a third of what those cost.

    `devices` are the values of `family.identity`, in its order, a tuple a device; `columns` hold, by metric name, a value for each device;
    `attributes` say more about each device, where there is anything to say; `since` is when the counters of all began.
    """

    family: Family
    devices: Sequence[tuple[str, ...]]
    columns: Mapping[str, Sequence[float | int | None]]
    attributes: Sequence[Mapping[str, str]] = ()
    since: float | None = None

    def readings(self) -> Iterator[Reading]:
        """A Reading of each device."""
        for n, device in enumerate(self.devices):
            identity = dict(zip(self.family.identity, device, strict=True))
            values = {name: column[n] for name, column in self.columns.items()}
            yield Reading(self.family, identity, values, self.attributes[n] if self.attributes else _NOTHING, self.since)


Observation = Reading | Table | Event | Foreign
"""What a collector gives: how things are, what has happened, and what others say that we have no word for."""


def readings_in(observed: Iterable[Observation]) -> Iterator[Reading]:
    """The readings among what a collector gave, those of tables too."""
    for one in observed:
        if isinstance(one, Reading):
            yield one
        elif isinstance(one, Table):
            yield from one.readings()


class Collector(Protocol):
    """Observes one kind of thing."""

    def collect(self, now: datetime) -> Iterable[Observation]:
        """The devices' readings at `now`, and what has happened since the last call. May raise OSError; may hang, the agent copes.

        Events that were given before an error count. The id of an event follows from what it tells of, so that one that is
        given again, by the next agent, is the same.
        """
        ...


@runtime_checkable
class Keeps(Protocol):
    """A collector that reads on where the agent before it had come to."""

    def kept(self) -> Mapping[str, int | None]:
        """How far it has come; the next agent finds it in `Site.kept`, once what was given before it is delivered. None is forgotten."""
        ...


@runtime_checkable
class MayBeAbsent(Protocol):
    """A collector that can say why there is nothing for it to observe: `surefoot doctor` and `--once` show it."""

    def absent(self) -> str:
        """Why there is nothing here ("no NVIDIA driver"), from the machine as it is now; "" where there is, or may be, something.

        Asked only after a pass that gave no reading and no error, in the same thread and within the same deadline.
        """
        ...


@runtime_checkable
class Sourced(Protocol):
    """A collector that may look in several places: `surefoot doctor` and `--once --json` show which."""

    def source(self) -> str:
        """Where it looked in its last pass ("/dev/kmsg"); "" where nowhere."""
        ...


@runtime_checkable
class Stirs(Protocol):
    """A collector that knows, at next to no cost, when it is worth a look before its time."""

    def stirred(self) -> bool:
        """Whether to look now. Asked some times a second between passes, never during one, by another thread; must not wait."""
        ...


@runtime_checkable
class Closes(Protocol):
    """A collector that holds what would outlast it: processes, files."""

    def close(self) -> None:
        """Gives it back. Called once, after the last pass, in the same thread; not where a pass hangs. Must not wait for what hangs."""
        ...


class RankProcess(NamedTuple):
    """A rank of a run on this node; `started` (ticks since boot) tells it from another process that had its pid."""

    run: str
    rank: int
    pid: int
    started: int | None


@dataclass(frozen=True, slots=True)
class Site:
    """Where collectors look: roots that tests replace. `ticks` a second is the kernel's USER_HZ; times are seconds."""

    node: str
    proc: Path = Path("/proc")
    shm: Path = Path("/dev/shm")
    ticks: float = float(os.sysconf("SC_CLK_TCK"))
    usage: Callable[[str], Usage] = statvfs  # of what cannot hang
    probes: Callable[[], Probes[Usage]] = mounts.usages  # of what can
    writes: Callable[[], Probes[Written]] = mounts.writes  # of a small file
    quotas: Callable[[], Probes[Quotas]] = mounts.quotas  # of folders
    smarts: Callable[[], Probes[Smart]] = mounts.smarts  # of NVMe controllers
    kubelet: Callable[[Door], str | None] = ask
    probe_timeout: float = 2.0
    cgroups: Path = Path("/sys/fs/cgroup")
    ranks: Callable[[], Sequence[RankProcess]] = tuple  # those that are known now
    gpus: Callable[[], Mapping[str, str]] = dict  # UUIDs of the GPUs that are known, by PCI address ("0000:3b:00.0")
    sys: Path = Path("/sys")
    kmsg: Path = Path("/dev/kmsg")
    moved_crashes: Path = Path("/var/lib/systemd/pstore")  # where systemd-pstore puts what the kernel saved of crashes
    ethtool: Callable[[str], Mapping[str, int]] | None = None  # a driver's statistics; None: the kernel's, where `sys` is its own
    kept: Mapping[str, int] = field(default_factory=dict)  # how far the collectors of the agent before had come
    clock_offset: Callable[[], float | None] = lambda: None  # seconds by which this machine's clock is ahead of ingest's
    settings: AgentSettings = field(default_factory=AgentSettings)
