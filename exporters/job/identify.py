"""Which of the command's processes are ranks: by the RANK in the environment that each was started with."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from exporters.job.procfs import Stat, read_environ

NAMES: Final = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_ERROR_FILE",
    "TORCH_FR_DUMP_TEMP_FILE",
    "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
)
_PLACE: Final = ("RANK", "LOCAL_RANK", "TORCHELASTIC_RESTART_COUNT")
_LAUNCHERS: Final = frozenset(
    {"torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "horovodrun", "srun", "torch.distributed.run", "torch.distributed.launch"}
)

Environment = Mapping[str, str]
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Place:
    """A rank: its process, and where it stands among its peers. `restarts` counts torchrun's own restarts."""

    pid: int
    start: int
    rank: int
    local_rank: int | None = None
    world_size: int | None = None
    local_world_size: int | None = None
    restarts: int = 0
    error_file: str = ""
    dump_prefix: str = ""  # of the flight recorder's files, "" where it writes none

    @property
    def offset(self) -> int | None:
        """What is added to a local rank of this node to give the rank."""
        return None if self.local_rank is None else self.rank - self.local_rank


def place(stat: Stat, environment: Environment) -> Place | None:
    """The rank that `environment` declares; None where RANK is missing or no number."""
    rank = _number(environment, "RANK")
    if rank is None:
        return None
    dump = environment.get("TORCH_FR_DUMP_TEMP_FILE") or environment.get("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") or ""
    return Place(
        stat.pid,
        stat.start,
        rank,
        _number(environment, "LOCAL_RANK"),
        _number(environment, "WORLD_SIZE"),
        _number(environment, "LOCAL_WORLD_SIZE"),
        _number(environment, "TORCHELASTIC_RESTART_COUNT") or 0,
        environment.get("TORCHELASTIC_ERROR_FILE", ""),
        dump,
    )


def is_launcher(command: Sequence[str]) -> bool:
    """Whether a command line starts ranks rather than being one."""
    return any(word in _LAUNCHERS or PurePath(word).name in _LAUNCHERS for word in command[:6])


def whole(places: Sequence[Place]) -> bool:
    """Whether all ranks that this node should have are there."""
    sizes = [p.local_world_size for p in places if p.local_world_size]
    return bool(places) and len(places) >= (sizes[0] if sizes else 1)


class Kin:
    """Remembers who is a rank and who stands below one.

    A rank is the topmost process that *introduces* its RANK: one whose RANK, LOCAL_RANK or restart count
    differs from its parent's (`own` for our direct children). So a launcher that merely inherited a
    RANK is none, nor are data loaders.
    """

    def __init__(self, own: Environment) -> None:
        self._own = own
        self._environments: dict[Key, Environment] = {}
        self._places: dict[Key, Place] = {}
        self._below: set[Key] = set()

    def update(self, processes: Sequence[Stat]) -> list[Place]:
        """Takes the tree as it is now (parents before children); gives the ranks that were not known before."""
        by_pid = {s.pid: s for s in processes}
        found = []
        for stat in processes:
            if stat.key in self._places or stat.key in self._below:
                continue
            parent = by_pid.get(stat.ppid)
            if parent and (parent.key in self._places or parent.key in self._below):
                self._below.add(stat.key)
            elif new := self._introduced(stat, parent):
                if stat.ppid == os.getpid() and self._known(new):  # a dead rank's child that was never seen below it
                    self._below.add(stat.key)
                    continue
                self._places[stat.key] = new
                found.append(new)
        self._forget({s.key for s in processes})
        return found

    def _introduced(self, stat: Stat, parent: Stat | None) -> Place | None:
        # Read each time: a process that has not yet called exec still shows its parent's environment.
        mine = self._environments[stat.key] = read_environ(stat.pid, NAMES)
        above = self._environments.get(parent.key, {}) if parent else self._own
        changed = any(mine.get(name) != above.get(name) for name in _PLACE)
        return place(stat, mine) if changed else None

    def _known(self, new: Place) -> bool:
        return any((p.rank, p.restarts) == (new.rank, new.restarts) for p in self._places.values())

    def _forget(self, alive: set[Key]) -> None:
        self._below &= alive
        for gone in self._environments.keys() - alive:
            del self._environments[gone]


def _number(environment: Environment, name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 8 else None
