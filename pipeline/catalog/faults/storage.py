"""Faults of the layer storage that something finds."""

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

MOUNT_HUNG = Fault(
    "mount_hung",
    Layer.STORAGE,
    Severity.CRITICAL,
    10,
    None,
    "A file system does not answer",
    "exclude the node if it is one, page storage if it is many",
)
MOUNT_STALE_OR_GONE = Fault(
    "mount_stale_or_gone",
    Layer.STORAGE,
    Severity.CRITICAL,
    10,
    None,
    "A file system is stale or no longer mounted",
    "mount it again; exclude the node",
)
FILESYSTEM_FULL = Fault(
    "filesystem_full",
    Layer.STORAGE,
    Severity.ERROR,
    10,
    None,
    "A file system is full",
    "free space there before the next checkpoint is written",
)
FILESYSTEM_READ_ONLY = Fault(
    "filesystem_read_only",
    Layer.STORAGE,
    Severity.CRITICAL,
    2,
    None,
    "A file system became read-only",
    "exclude the node",
)
DISK_FAILING = Fault(
    "disk_failing",
    Layer.STORAGE,
    Severity.ERROR,
    30,
    None,
    "A disk fails",
    "drain after checkpoint",
)
CACHE_LAYER_FAULT = Fault(
    "cache_layer_fault",
    Layer.STORAGE,
    Severity.ERROR,
    60,
    None,
    "The cache in front of the storage fails",
    "page storage",
)
CROSS_REGION_LAG = Fault(
    "cross_region_lag",
    Layer.STORAGE,
    Severity.WARNING,
    300,
    None,
    "Data comes in slower than it is needed",
    "page data team",
)

STORAGE: tuple[Fault, ...] = (
    MOUNT_HUNG,
    MOUNT_STALE_OR_GONE,
    FILESYSTEM_FULL,
    FILESYSTEM_READ_ONLY,
    DISK_FAILING,
    CACHE_LAYER_FAULT,
    CROSS_REGION_LAG,
)
