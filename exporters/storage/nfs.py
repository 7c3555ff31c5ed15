"""NFS: what the client counts for each mount and kind of request, and what a server on this machine does."""

from collections.abc import Iterator
from datetime import datetime

from exporters.collector import Reading, Site
from exporters.sources import procfs
from exporters.sources.storage import mountstats
from exporters.sources.storage.mountstats import NfsMount, Operation
from exporters.storage.mounts import distinct
from pipeline.catalog.metrics import NFS, NFS_OPERATION, NFS_SERVER


class NfsCollector:
    """Readings for each NFS mount, from the kernel's counts alone: nothing is asked of a server."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def absent(self) -> str:
        """No mount of NFS, and no server."""
        return "no NFS file system is mounted here, or served"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The readings of each mount that is watched, once, and of its requests; then the server's. None where there is no NFS."""
        node = self._site.node
        told = mountstats.mounts(self._site.proc)
        for mount in distinct(procfs.mounts(self._site.proc)) if told else ():
            if (stats := told.get(mount.mount_point)) is not None:
                where = {"node": node, "mount_point": mount.mount_point, "source": mount.source}
                since = now.timestamp() - stats.age if stats.age is not None else None
                yield Reading(NFS, where, _mount(stats), _attributes(stats), since)
                for operation in stats.operations:
                    yield Reading(NFS_OPERATION, {**where, "operation": operation.name}, _operation(operation), {}, since)
        server = procfs.nfs_server(self._site.proc)
        if server is not None:
            yield Reading(NFS_SERVER, {"node": node}, {"nfs_server.read": server.read, "nfs_server.written": server.written})


def _attributes(stats: NfsMount) -> dict[str, str]:
    return {"protocol": stats.transports.protocol} if stats.transports.protocol else {}


def _mount(stats: NfsMount) -> dict[str, float | int | None]:
    moved, over = stats.bytes, stats.transports
    return {
        "nfs.read": _both(moved.read, moved.direct_read),
        "nfs.written": _both(moved.written, moved.direct_written),
        "nfs.wire.read": moved.server_read,
        "nfs.wire.written": moved.server_written,
        "nfs.transports": over.count or None,
        "nfs.connects": over.connects,
        "nfs.idle": over.idle,
        "nfs.sends": over.sends,
        "nfs.receives": over.receives,
        "nfs.bad_xids": over.bad_xids,
        "nfs.backlog": over.backlog,
        "nfs.rdma.read_chunks": over.read_chunks,
        "nfs.rdma.write_chunks": over.write_chunks,
        "nfs.rdma.reply_chunks": over.reply_chunks,
        "nfs.rdma.requests": over.requests,
        "nfs.rdma.replies": over.replies,
        "nfs.rdma.failed_marshals": over.failed_marshals,
        "nfs.rdma.bad_replies": over.bad_replies,
        "nfs.absurd": stats.absurd,
    }


def _operation(one: Operation) -> dict[str, float | int | None]:
    return {
        "nfs_operation.requests": one.requests,
        "nfs_operation.transmissions": one.transmissions,
        "nfs_operation.timeouts": one.timeouts,
        "nfs_operation.sent": one.sent,
        "nfs_operation.received": one.received,
        "nfs_operation.queue.time": one.queued,
        "nfs_operation.rtt.time": one.answered,
        "nfs_operation.time": one.taken,
        "nfs_operation.errors": one.errors,
    }


def _both(one: int | None, other: int | None) -> int | None:
    """The sum, of what is known of it nothing: half a count is no count."""
    return None if one is None or other is None else one + other
