"""File systems that lie on other machines, as their clients see them, and volumes of Kubernetes."""

from pipeline.catalog.metric import F64, U8, U32, U64, C, Family, G, Metric

NFS = Family(
    "nfs",
    ("node", "mount_point", "source"),
    "An NFS mount",
    (
        Metric("nfs.read", "By", C, U64, 0, None, "Bytes that programs read, through memory and past it"),
        Metric("nfs.written", "By", C, U64, 0, None, "Bytes that programs wrote, through memory and past it"),
        Metric("nfs.wire.read", "By", C, U64, 0, None, "Bytes read from the server"),
        Metric("nfs.wire.written", "By", C, U64, 0, None, "Bytes written to the server"),
        Metric("nfs.transports", "1", G, U32, 0, 65_536, "Connections to the server, one unless mounted with nconnect"),
        Metric("nfs.connects", "1", C, U64, 0, None, "Times that a connection was made, all transports together"),
        Metric("nfs.idle", "s", G, F64, 0, None, "Since when nothing was asked of the server"),
        Metric("nfs.sends", "1", C, U64, 0, None, "Requests sent"),
        Metric("nfs.receives", "1", C, U64, 0, None, "Answers received"),
        Metric("nfs.bad_xids", "1", C, U64, 0, None, "Answers to no request of ours"),
        Metric("nfs.backlog", "1", C, U64, 0, None, "Requests that waited for a free slot, summed at each that was sent"),
        Metric("nfs.rdma.read_chunks", "1", C, U64, 0, None, "Read chunks registered"),
        Metric("nfs.rdma.write_chunks", "1", C, U64, 0, None, "Write chunks registered"),
        Metric("nfs.rdma.reply_chunks", "1", C, U64, 0, None, "Reply chunks registered"),
        Metric("nfs.rdma.requests", "By", C, U64, 0, None, "Bytes of requests that the server fetched by RDMA"),
        Metric("nfs.rdma.replies", "By", C, U64, 0, None, "Bytes of answers that the server put by RDMA"),
        Metric("nfs.rdma.failed_marshals", "1", C, U64, 0, None, "Requests that could not be made ready for RDMA"),
        Metric("nfs.rdma.bad_replies", "1", C, U64, 0, None, "Answers by RDMA that made no sense"),
        Metric("nfs.absurd", "1", G, U32, 0, None, "Values of this mount that cannot be, and are left out"),
    ),
)

NFS_OPERATION = Family(
    "nfs_operation",
    ("node", "mount_point", "source", "operation"),
    "A kind of request of an NFS mount",
    (
        Metric("nfs_operation.requests", "1", C, U64, 0, None, "Requests"),
        Metric(
            "nfs_operation.transmissions", "1", C, U64, 0, None, "Times that such a request was sent; more than requests: it was sent again"
        ),
        Metric("nfs_operation.timeouts", "1", C, U64, 0, None, "Times that no answer came in time"),
        Metric("nfs_operation.sent", "By", C, U64, 0, None, "Bytes sent"),
        Metric("nfs_operation.received", "By", C, U64, 0, None, "Bytes received"),
        Metric("nfs_operation.queue.time", "s", C, F64, 0, None, "Time spent waiting to be sent, summed over requests"),
        Metric("nfs_operation.rtt.time", "s", C, F64, 0, None, "Time from sending to the answer, summed over requests"),
        Metric("nfs_operation.time", "s", C, F64, 0, None, "Time from the beginning to the end, summed over requests"),
        Metric("nfs_operation.errors", "1", C, U64, 0, None, "Requests that ended with an error"),
    ),
)

NFS_SERVER = Family(
    "nfs_server",
    ("node",),
    "The NFS server of this machine",
    (
        Metric("nfs_server.read", "By", C, U32, 0, None, "Bytes read for clients", width=32),
        Metric("nfs_server.written", "By", C, U32, 0, None, "Bytes written for clients", width=32),
    ),
)

LUSTRE = Family(
    "lustre",
    ("node", "filesystem"),
    "A Lustre file system on its client",
    (
        Metric("lustre.read", "By", C, U64, 0, None, "Bytes read"),
        Metric("lustre.written", "By", C, U64, 0, None, "Bytes written"),
        Metric("lustre.reads", "1", C, U64, 0, None, "Reads"),
        Metric("lustre.writes", "1", C, U64, 0, None, "Writes"),
        Metric("lustre.opens", "1", C, U64, 0, None, "Files opened"),
        Metric("lustre.closes", "1", C, U64, 0, None, "Files closed"),
        Metric("lustre.syncs", "1", C, U64, 0, None, "Times that a program asked for stable storage"),
        Metric("lustre.lookups", "1", C, U64, 0, None, "Attributes of files asked for"),
    ),
)

LUSTRE_TARGET = Family(
    "lustre_target",
    ("node", "target"),
    "A Lustre server's target as its client sees it",
    (
        Metric(
            "lustre_target.connected", "1", G, U8, 0, 1, "1 where the client is connected, or let an idle connection go; 0 where it cannot"
        ),
        Metric("lustre_target.in_flight", "1", G, U32, 0, None, "Requests in flight now"),
        Metric("lustre_target.timeouts", "1", C, U64, 0, None, "Requests without an answer in time"),
        Metric("lustre_target.wait", "s", G, F64, 0, None, "How long a request waits for its answer, on average"),
        Metric("lustre_target.connects", "1", C, U64, 0, None, "Times that the client tried to connect"),
        Metric("lustre_target.size", "By", G, U64, 0, None, "Size of the target"),
        Metric("lustre_target.free", "By", G, U64, 0, None, "Free on the target for users that are not root"),
    ),
)

VOLUME = Family(
    "volume",
    ("node", "claim"),
    "A persistent volume that pods of this node use",
    (
        Metric("volume.size", "By", G, U64, 0, None, "Size of the volume"),
        Metric("volume.free", "By", G, U64, 0, None, "Free on the volume"),
        Metric("volume.used", "By", G, U64, 0, None, "Used on the volume"),
        Metric("volume.inodes", "1", G, U64, 0, None, "Inodes in all"),
        Metric("volume.inodes_free", "1", G, U64, 0, None, "Inodes free"),
        Metric("volume.healthy", "1", G, U8, 0, 1, "1 where its CSI driver holds the volume for well, 0 where not"),
        Metric("volume.pods", "1", G, U32, 0, None, "Pods of this node that use it"),
    ),
)
