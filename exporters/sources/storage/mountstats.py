"""What the kernel's NFS client says about each mount (/proc/self/mountstats), in base units.

Every value stands alone. A time or count that is negative, which the kernel prints as a number near 2^64, is None and is counted in
`absurd`. Lines of a kind or a length that is not known are left out, and spare the others.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from exporters.sources import attributes
from exporters.sources.procfs import unescape

_ABSURD: Final = 1 << 63
_SOCKETS: Final = {"tcp": 2, "udp": 1, "local": 1, "rdma": 2}  # words before the count of connects, or where there is none, of sends


@dataclass(slots=True)
class Transports:
    """The connections to the server, all together: with nconnect there are several. Sums, `idle` is the shortest in seconds.

    `backlog` adds, at each request that was sent, how many waited for a free slot. The last seven are of RDMA transports alone:
    `requests` and `replies` are bytes moved by RDMA.
    """

    protocol: str = ""
    count: int = 0
    connects: int | None = None
    sends: int | None = None
    receives: int | None = None
    bad_xids: int | None = None
    backlog: int | None = None
    idle: int | None = None
    read_chunks: int | None = None
    write_chunks: int | None = None
    reply_chunks: int | None = None
    requests: int | None = None
    replies: int | None = None
    failed_marshals: int | None = None
    bad_replies: int | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """One kind of request, summed since the mount. Bytes, and seconds: in the queue, from sending to the answer, and altogether.

    `errors` is None on kernels before 5.0, which do not count them.
    """

    name: str
    requests: int | None
    transmissions: int | None
    timeouts: int | None
    sent: int | None
    received: int | None
    queued: float | None
    answered: float | None
    taken: float | None
    errors: int | None


@dataclass(slots=True)
class Bytes:
    """What programs read and wrote (through memory, and past it), and what went over the wire."""

    read: int | None = None
    written: int | None = None
    direct_read: int | None = None
    direct_written: int | None = None
    server_read: int | None = None
    server_written: int | None = None


@dataclass(slots=True)
class NfsMount:
    """An NFS mount. `age` is seconds since it was mounted, when its counters began. `operations` are those that ever happened."""

    mount_point: str
    source: str
    age: int | None = None
    bytes: Bytes = field(default_factory=Bytes)
    transports: Transports = field(default_factory=Transports)
    operations: list[Operation] = field(default_factory=list)
    absurd: int = 0


def mounts(proc: Path) -> dict[str, NfsMount]:
    """The NFS mounts by mount point; of two at one place the upper one. `proc` is the root, /proc on a live machine.

    Raises OSError where the kernel has such a list and it cannot be read.
    """
    try:
        text = attributes.contents(proc / "self/mountstats")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    return {mount.mount_point: mount for mount in parse(text)}


def parse(text: str) -> Iterator[NfsMount]:
    """The NFS mounts in the kernel's order."""
    mount: NfsMount | None = None
    operations = False
    for line in text.split("\n"):
        if line.startswith("device "):
            if mount is not None:
                yield mount
            mount, operations = _begun(line), False
        elif mount is not None:
            key, _, rest = line.strip().partition(":")
            if key == "per-op statistics" or line.strip() == "per-op statistics":
                operations = True
            elif operations:
                _operation(mount, key, rest.split())
            elif key in _LINES:
                _LINES[key](mount, rest.split())
    if mount is not None:
        yield mount


def _begun(line: str) -> NfsMount | None:
    """ "device SOURCE mounted on PLACE with fstype TYPE statvers=1.1"; blanks in names are octal."""
    words = line.split(" ")
    if len(words) < 8 or words[2:4] != ["mounted", "on"] or words[5:7] != ["with", "fstype"] or not words[7].startswith("nfs"):
        return None
    if not any(word.startswith("statvers=1.") for word in words[8:]):
        return None
    return NfsMount(unescape(words[4]), unescape(words[1]))


def _age(mount: NfsMount, words: list[str]) -> None:
    mount.age = _count(mount, words, 0)


def _bytes(mount: NfsMount, words: list[str]) -> None:
    mount.bytes = Bytes(*(_count(mount, words, n) for n in range(6)))


def _transport(mount: NfsMount, words: list[str]) -> None:
    """ "tcp PORT BINDS CONNECTS CONNECT_TIME IDLE SENDS RECEIVES BAD_XIDS IN_FLIGHT BACKLOG …"; udp has no connections, local no port."""
    protocol = words[0] if words else ""
    if protocol not in _SOCKETS:
        return
    total, values = mount.transports, words[1:]
    total.count += 1
    total.protocol = protocol
    first = _SOCKETS[protocol]
    if protocol != "udp":
        total.connects = _sum(total.connects, _count(mount, values, first))
        idle = _count(mount, values, first + 2)
        total.idle = idle if total.idle is None or (idle is not None and idle < total.idle) else total.idle
        first += 3
    else:
        first += 1
    total.sends = _sum(total.sends, _count(mount, values, first))
    total.receives = _sum(total.receives, _count(mount, values, first + 1))
    total.bad_xids = _sum(total.bad_xids, _count(mount, values, first + 2))
    total.backlog = _sum(total.backlog, _count(mount, values, first + 4))
    if protocol == "rdma":
        _rdma(mount, values[first + 5 :])


def _rdma(mount: NfsMount, values: list[str]) -> None:
    """Chunks read, written and of replies, bytes of requests and replies, copies (3), requests not built, bad replies, …"""
    total = mount.transports
    names = ("read_chunks", "write_chunks", "reply_chunks", "requests", "replies", "", "", "", "failed_marshals", "bad_replies")
    for n, name in enumerate(names):
        if name:
            setattr(total, name, _sum(getattr(total, name), _count(mount, values, n)))


def _operation(mount: NfsMount, name: str, words: list[str]) -> None:
    """Eight numbers, since Linux 5.0 nine, and maybe more one day."""
    if len(words) < 8 or not name.isascii() or not name.replace("_", "").isalnum():
        return
    n = [_count(mount, words, i) for i in range(9)]
    if n[0] or n[1]:
        queued, answered, taken = (None if t is None else t / 1000 for t in n[5:8])
        mount.operations.append(Operation(name, n[0], n[1], n[2], n[3], n[4], queued, answered, taken, n[8]))


def _count(mount: NfsMount, words: list[str], index: int) -> int | None:
    if index >= len(words):
        return None
    value = attributes.whole(words[index])
    if value is not None and value >= _ABSURD:
        mount.absurd += 1
        return None
    return value


def _sum(total: int | None, value: int | None) -> int | None:
    """A sum of what is known; absent where nothing is."""
    return total if value is None else value if total is None else total + value


_LINES: Final = {"age": _age, "bytes": _bytes, "xprt": _transport}
