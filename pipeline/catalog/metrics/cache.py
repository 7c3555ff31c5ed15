"""The caches in front of object stores, and the transfer between regions: as their own pages tell it, which the agent scrapes."""

from pipeline.catalog.metric import F64, U8, U32, U64, C, Family, G, Metric

CACHE = Family(
    "cache",
    ("node", "cache"),
    "A cache in front of a store",
    (
        Metric("cache.workers", "1", G, U32, 0, None, "Workers that are there"),
        Metric("cache.workers.lost", "1", G, U32, 0, None, "Workers that were there and are lost"),
        Metric("cache.size", "By", G, U64, 0, None, "What the cache can hold"),
        Metric("cache.used", "By", G, U64, 0, None, "What the cache holds"),
        Metric("cache.hit_ratio", "1", G, F64, 0, 1, "Share of what was asked for that the cache had, since it began"),
        Metric("cache.hits", "1", C, U64, 0, None, "Blocks that the cache had"),
        Metric("cache.misses", "1", C, U64, 0, None, "Blocks that came from the store"),
        Metric("cache.hit", "By", C, U64, 0, None, "Bytes that the cache had"),
        Metric("cache.miss", "By", C, U64, 0, None, "Bytes that came from the store"),
        Metric("cache.dropped", "1", C, U64, 0, None, "Blocks that found no room in the cache"),
        Metric("cache.store.read", "By", C, U64, 0, None, "Bytes read from the store"),
        Metric("cache.store.written", "By", C, U64, 0, None, "Bytes written to the store"),
        Metric("cache.store.errors", "1", C, U64, 0, None, "Requests to the store that failed"),
        Metric("cache.staged", "By", G, U64, 0, None, "Bytes written to the cache and not yet to the store"),
        Metric("cache.dataset", "By", G, U64, 0, None, "Size of the data that the cache is for"),
        Metric("cache.faults", "1", C, U64, 0, None, "Times that its controller found it unwell or could not set it up"),
    ),
)

REGION_LINK = Family(
    "region_link",
    ("node", "link"),
    "A transfer of data to or from another region",
    (
        Metric("region_link.online", "1", G, U8, 0, 1, "1 where the other side can be reached, 0 where not"),
        Metric("region_link.offline", "s", G, F64, 0, None, "For how long the other side could not be reached"),
        Metric("region_link.latency", "s", G, F64, 0, None, "How long an answer of the other side takes"),
        Metric("region_link.sent", "By", C, U64, 0, None, "Bytes sent to the other side"),
        Metric("region_link.received", "By", C, U64, 0, None, "Bytes received from the other side"),
        Metric("region_link.backlog", "1", G, U64, 0, None, "Objects that wait to be transferred"),
        Metric("region_link.queued", "By", G, U64, 0, None, "Bytes put into the queue in the last minute"),
        Metric("region_link.failed", "1", C, U64, 0, None, "Objects that could not be transferred"),
    ),
)
