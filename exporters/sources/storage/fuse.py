"""FUSE connections: how many requests their servers have not answered."""

from dataclasses import dataclass
from pathlib import Path

from exporters.sources.attributes import number, whole
from exporters.sources.procfs import Mount


@dataclass(frozen=True, slots=True)
class Connection:
    """A FUSE file system's connection to its server. `number` is its folder in /sys/fs/fuse/connections; `waiting` counts the requests
    that wait for the server, None where the kernel does not say; it may be aborted there where `abortable`."""

    number: str
    waiting: int | None
    abortable: bool


def connection(mount: Mount, sys: Path) -> Connection | None:
    """The connection of `mount`; None of what is no FUSE file system, and where fusectl is not mounted.

    A connection bears the minor number of its mount's device. `sys` is the root, /sys on a live machine.
    """
    if mount.type not in ("fuse", "fuseblk") and not mount.type.startswith(("fuse.", "fuseblk.")):
        return None
    major, minor = (whole(word) for word in (mount.device + ":").split(":")[:2])
    if major is None or minor is None:
        return None
    # The kernel numbers a connection by its whole device number as it is kept inside: of an anonymous device, major 0, the minor alone.
    name = str(major << 20 | minor)
    folder = sys / "fs/fuse/connections" / name
    waiting = number(folder / "waiting")
    abortable = (folder / "abort").exists()
    return Connection(name, waiting, abortable) if waiting is not None or abortable else None
