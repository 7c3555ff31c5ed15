"""The control group that a process is in, its memory, and its pod: version 2, version 1, and the two side by side.

`root` is where control groups are mounted, /sys/fs/cgroup on a live machine; `proc` is /proc. What is absent is None.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_UNLIMITED: Final = 1 << 62  # version 1 says "no limit" with the largest number of pages
# The kubelet's folder of a pod: pod<uid> by the driver cgroupfs, [kubelet-]kubepods[-burstable]-pod<uid>.slice by systemd, which writes
# "_" for "-". The uid of a static pod is a hash without either.
_POD: Final = re.compile(r"(?:[a-z-]*kubepods[a-z-]*-)?pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?")
# Below it a container's: its id, with systemd the runtime's name before it (cri-containerd-, crio-, docker-). crio-conmon- watches one.
_CONTAINER: Final = re.compile(r"(?:(?!crio-conmon)[a-z-]+-)?([0-9a-f]{64})(?:\.scope)?")


@dataclass(frozen=True, slots=True)
class Group:
    """A control group: its path below the mount, and the folder that tells of its memory."""

    path: str
    folder: Path
    version: int


@dataclass(frozen=True, slots=True)
class GroupMemory:
    """Processes killed for want of memory since the group was made; bytes charged to it, and that it may use."""

    oom_kills: int | None
    used: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod of Kubernetes by its UID, and the id that the runtime gave its container; "" where it is in none of them."""

    uid: str
    container: str


def pod_of(proc: Path, pid: int) -> Pod | None:
    """The pod that `pid` runs in; None where it runs in none, or where there is no such process."""
    return pod(_text(proc / str(pid) / "cgroup"))


def pod(text: str) -> Pod | None:
    """The pod that a /proc/PID/cgroup tells of. The outermost counts: what is below a container was named by those that run in it."""
    for path in _paths(text).values():
        parts = [part for folder in path.split("/") for part in _parts(folder)]
        for at, part in enumerate(parts):
            if found := _POD.fullmatch(part):
                container = _CONTAINER.fullmatch(parts[at + 1]) if at + 1 < len(parts) else None
                return Pod(found[1].replace("_", "-"), container[1] if container else "")
    return None


def group_of(proc: Path, root: Path, pid: int) -> Group | None:
    """The group that accounts for the memory of `pid`; None where there is no such process or no such group."""
    paths = _paths(_text(proc / str(pid) / "cgroup"))
    for controllers, path in paths.items():
        if "memory" in controllers.split(","):
            return _group(proc, root / "memory", path, 1)
    if "" not in paths:
        return None
    return _group(proc, root, paths[""], 2) or _group(proc, root / "unified", paths[""], 2)


def memory(group: Group) -> GroupMemory | None:
    """What the group says; None where it is no more."""
    names = {
        1: ("memory.oom_control", "memory.usage_in_bytes", "memory.limit_in_bytes"),
        2: ("memory.events", "memory.current", "memory.max"),
    }
    events, used, limit = (_text(group.folder / name) for name in names[group.version])
    if not events and not group.folder.is_dir():
        return None
    kills = re.search(r"^oom_kill (\d+)$", events, re.M)
    most = _int(limit)
    return GroupMemory(int(kills[1]) if kills else None, _int(used), None if most is None or most >= _UNLIMITED else most)


def _paths(text: str) -> dict[str, str]:
    """The paths of a /proc/PID/cgroup, by controllers ("cpu,cpuacct"; "" is version 2)."""
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in text.splitlines() if line.count(":") >= 2)}


def _parts(folder: str) -> list[str]:
    """A folder; containerd that was left on cgroupfs under a kubelet on systemd makes one of three: slice:cri-containerd:id."""
    slice_, *rest = folder.split(":")
    return [slice_, rest[-1]] if len(rest) == 2 else [folder]


def _group(proc: Path, mounted: Path, path: str, version: int) -> Group | None:
    """In a container the mount shows only a part of the tree, and the path may be told from the tree's root or from that part's."""
    return (
        _here(mounted, path, path, version)
        or _here(mounted, path, path.removeprefix(_mount_root(proc, version).rstrip("/")), version)
        or _here(mounted, path, "/", version)
    )


def _here(mounted: Path, path: str, below: str, version: int) -> Group | None:
    folder = mounted / below.lstrip("/")
    there = ".." not in Path(below).parts and (folder / ("memory.oom_control" if version == 1 else "memory.events")).exists()
    return Group(path, folder, version) if there else None


def _mount_root(proc: Path, version: int) -> str:
    """Which part of the tree the mount shows, "" where it cannot be told."""
    for line in _text(proc / "self/mountinfo").splitlines():
        mount, _, rest = line.partition(" - ")
        front, back = mount.split(" "), rest.split(" ")
        kind = back[0] == "cgroup2" if version == 2 else back[0] == "cgroup" and "memory" in back[-1].split(",")
        if kind and len(front) > 3:
            return front[3]
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _int(text: str) -> int | None:
    word = text.strip()
    return int(word) if word.isascii() and word.isdigit() else None
