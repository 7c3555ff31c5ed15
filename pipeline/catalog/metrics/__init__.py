"""Every metric, once: name, unit, kind, column type, valid range and help on one line.

A *family* is one wide table: a row is one device's readings at one time. The column is the metric's
name without its family, dots as underscores. The table, its view, the OTLP message and the
Prometheus page are all generated from here.
"""

from pipeline.catalog.metric import ColumnType as ColumnType
from pipeline.catalog.metric import Family as Family
from pipeline.catalog.metric import Kind as Kind
from pipeline.catalog.metric import Metric as Metric
from pipeline.catalog.metrics.agent import AGENT as AGENT
from pipeline.catalog.metrics.agent import SENDER as SENDER
from pipeline.catalog.metrics.cache import CACHE as CACHE
from pipeline.catalog.metrics.cache import REGION_LINK as REGION_LINK
from pipeline.catalog.metrics.chassis import CHASSIS as CHASSIS
from pipeline.catalog.metrics.gpu import GPU as GPU
from pipeline.catalog.metrics.gpu import GPU_LINK as GPU_LINK
from pipeline.catalog.metrics.gpu import GPU_PARTITION as GPU_PARTITION
from pipeline.catalog.metrics.gpu import GPU_PROCESS as GPU_PROCESS
from pipeline.catalog.metrics.host import CGROUP as CGROUP
from pipeline.catalog.metrics.host import HOST as HOST
from pipeline.catalog.metrics.network import NETDEV as NETDEV
from pipeline.catalog.metrics.network import RDMA_PORT as RDMA_PORT
from pipeline.catalog.metrics.network_storage import LUSTRE as LUSTRE
from pipeline.catalog.metrics.network_storage import LUSTRE_TARGET as LUSTRE_TARGET
from pipeline.catalog.metrics.network_storage import NFS as NFS
from pipeline.catalog.metrics.network_storage import NFS_OPERATION as NFS_OPERATION
from pipeline.catalog.metrics.network_storage import NFS_SERVER as NFS_SERVER
from pipeline.catalog.metrics.network_storage import VOLUME as VOLUME
from pipeline.catalog.metrics.scheduler import CSI_DRIVER as CSI_DRIVER
from pipeline.catalog.metrics.scheduler import SCHED_JOB as SCHED_JOB
from pipeline.catalog.metrics.scheduler import SCHED_NODE as SCHED_NODE
from pipeline.catalog.metrics.scheduler import SCHED_VOLUME as SCHED_VOLUME
from pipeline.catalog.metrics.scrape import ROLLOUT_ENGINE as ROLLOUT_ENGINE
from pipeline.catalog.metrics.scrape import SCRAPE as SCRAPE
from pipeline.catalog.metrics.storage import DISK as DISK
from pipeline.catalog.metrics.storage import DISK_HEALTH as DISK_HEALTH
from pipeline.catalog.metrics.storage import MOUNT as MOUNT
from pipeline.catalog.metrics.storage import QUOTA as QUOTA
from pipeline.catalog.metrics.switch import SWITCH_PORT as SWITCH_PORT

_STORAGE: tuple[Family, ...] = (MOUNT, NFS, NFS_OPERATION, NFS_SERVER, LUSTRE, LUSTRE_TARGET, VOLUME, QUOTA, DISK, DISK_HEALTH)

FAMILIES: tuple[Family, ...] = (
    HOST,
    *_STORAGE,
    CGROUP,
    CHASSIS,
    RDMA_PORT,
    NETDEV,
    GPU,
    GPU_LINK,
    GPU_PARTITION,
    GPU_PROCESS,
    AGENT,
    SENDER,
    SCRAPE,
    ROLLOUT_ENGINE,
    CACHE,
    REGION_LINK,
    SWITCH_PORT,
    SCHED_NODE,
    SCHED_JOB,
    CSI_DRIVER,
    SCHED_VOLUME,
)
BY_NAME: dict[str, tuple[Family, Metric]] = {m.name: (f, m) for f in FAMILIES for m in f.metrics}
