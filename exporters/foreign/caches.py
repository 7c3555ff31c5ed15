"""The names of caches and stores: Alluxio's master, JuiceFS's clients, Fluid's controllers, MinIO's replication, `juicefs sync`.

Alluxio's are those of its documentation ("List of Metrics") as its Prometheus servlet writes them: a dot is an underscore. What it calls a
throughput is a mean over its whole life, and is left as it is.
"""

from typing import Final

from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import CACHE, REGION_LINK

_READS: Final = {"method": "GET"}
_WRITES: Final = {"method": "PUT"}

CACHES: Final = (
    NameMap(
        "Alluxio",
        CACHE,
        {"cache": ("alluxio/{target}",)},
        (
            Name("Cluster_Workers", "cache.workers"),
            Name("Cluster_LostWorkers", "cache.workers.lost"),
            Name("Cluster_CapacityTotal", "cache.size"),
            Name("Cluster_CapacityUsed", "cache.used"),
            Name("Cluster_CacheHitRate", "cache.hit_ratio"),
            Name("Cluster_BytesReadUfsAll", "cache.store.read"),
            Name("Cluster_BytesWrittenUfsAll", "cache.store.written"),
        ),
    ),
    NameMap(
        "JuiceFS",
        CACHE,
        {"cache": ("juicefs/{vol_name}", "juicefs/{target}")},
        (
            Name("juicefs_blockcache_bytes", "cache.used"),
            Name("juicefs_blockcache_hits", "cache.hits"),
            Name("juicefs_blockcache_miss", "cache.misses"),
            Name("juicefs_blockcache_hit_bytes", "cache.hit"),
            Name("juicefs_blockcache_miss_bytes", "cache.miss"),
            Name("juicefs_blockcache_drops", "cache.dropped"),
            Name("juicefs_object_request_data_bytes", "cache.store.read", where=_READS),
            Name("juicefs_object_request_data_bytes", "cache.store.written", where=_WRITES),
            Name("juicefs_object_request_errors", "cache.store.errors"),
            Name("juicefs_staging_block_bytes", "cache.staged"),
        ),
        attributes={"mount_point": ("{mp}",)},
    ),
    NameMap(
        "Fluid",
        CACHE,
        {"cache": ("fluid/{dataset}", "fluid/{runtime}")},  # both are "namespace/name", and a runtime has its dataset's name
        (
            Name("dataset_ufs_total_size", "cache.dataset"),
            Name("runtime_setup_error_total", "cache.faults"),
            Name("runtime_sync_healthcheck_error_total", "cache.faults"),
        ),
        attributes={"kind": ("{runtime_type}",)},
    ),
    NameMap(
        "MinIO",
        REGION_LINK,
        {"link": ("{target}/{endpoint}", "{target}")},
        (
            Name("minio_cluster_replication_link_online", "region_link.online"),
            Name("minio_cluster_replication_link_offline_duration_seconds", "region_link.offline"),
            Name("minio_cluster_replication_current_link_latency_ms", "region_link.latency", over=1e3),
            Name("minio_cluster_replication_sent_bytes", "region_link.sent"),
            Name("minio_cluster_replication_received_bytes", "region_link.received"),
            Name("minio_cluster_replication_recent_backlog_count", "region_link.backlog"),
            Name("minio_cluster_replication_last_minute_queued_bytes", "region_link.queued"),
            Name("minio_cluster_replication_total_failed_count", "region_link.failed"),
        ),
    ),
    NameMap(
        "juicefs sync",
        REGION_LINK,
        {"link": ("{target}",)},
        (
            Name("juicefs_sync_copied_bytes", "region_link.sent"),
            Name("juicefs_sync_pending", "region_link.backlog"),
            Name("juicefs_sync_failed", "region_link.failed"),
        ),
    ),
)
