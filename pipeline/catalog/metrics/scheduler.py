"""What schedulers say of nodes and jobs."""

from pipeline.catalog.metric import F64, U8, U32, U64, C, Family, G, Metric

SCHED_NODE = Family(
    "sched_node",
    ("node", "scheduler"),
    "A node as a scheduler sees it",
    (
        Metric("sched_node.ready", "1", G, U8, 0, 1, "1 where the scheduler holds the node for fit; absent where it is meant to be away"),
        Metric("sched_node.schedulable", "1", G, U8, 0, 1, "1 where work may be placed on it, 0 where it is cordoned, drained or unfit"),
        Metric("sched_node.gpus", "1", G, U32, 0, 1024, "GPUs that the scheduler can give out"),
        Metric("sched_node.gpus_used", "1", G, U32, 0, 1024, "GPUs that it has given out"),
    ),
)

SCHED_JOB = Family(
    "sched_job",
    ("node", "scheduler", "job"),
    "A job or pod, as told to the agent of that node",
    (
        Metric("sched_job.running", "1", G, U8, 0, 1, "1 where it runs"),
        Metric("sched_job.waiting", "s", G, F64, 0, None, "How long it has been waiting for a place that it had, or that no node can give"),
        Metric("sched_job.nodes", "1", G, U32, 0, None, "Nodes that it has"),
        Metric("sched_job.gpus", "1", G, U32, 0, None, "GPUs that it has or asks for"),
        Metric("sched_job.starts", "1", C, U32, 0, None, "How often it was begun again"),
    ),
)

CSI_DRIVER = Family(
    "csi_driver",
    ("node", "scheduler", "driver"),
    "A driver of volumes (CSI) on a node of Kubernetes",
    (
        Metric("csi_driver.registered", "1", G, U8, 0, 1, "1 where the node's kubelet has the driver, 0 where it should and does not"),
        Metric("csi_driver.ready", "1", G, U8, 0, 1, "1 where all containers of the driver's pod on the node are ready"),
        Metric("csi_driver.restarts", "1", C, U32, 0, None, "How often containers of that pod were begun again"),
        Metric("csi_driver.volumes.max", "1", G, U32, 0, None, "Volumes that the driver can attach to the node"),
    ),
)

SCHED_VOLUME = Family(
    "sched_volume",
    ("node", "scheduler", "volume"),
    "A persistent volume of Kubernetes that nobody has any more",
    (
        Metric("sched_volume.size", "By", G, U64, 0, None, "Its capacity"),
        Metric("sched_volume.failed", "1", G, U8, 0, 1, "1 where it could not be reclaimed, 0 where its claim is gone and it is kept"),
    ),
)
