"""The agent itself."""

from pipeline.catalog.metric import F64, U8, U64, C, Family, G, Metric

AGENT = Family(
    "agent",
    ("node", "collector"),
    "A collector of the node's agent",
    (
        Metric("agent.collect.ok", "1", G, U8, 0, 1, "1 where the collector's last pass gave readings"),
        Metric("agent.collect.time", "s", G, F64, 0, None, "How long the last pass took"),
        Metric("agent.rejected", "1", C, U64, 0, None, "Readings left out since start: beyond their valid range"),
        Metric("agent.last_success", "s", G, F64, 0, None, "When the collector last gave readings, seconds since 1970"),
        Metric("agent.age", "s", G, F64, 0, None, "How long ago the collector last gave readings"),
        Metric("agent.absent", "1", G, U8, 0, 1, "1 where there is nothing here for the collector to observe"),
    ),
)

SENDER = Family(
    "sender",
    ("node",),
    "What waits on this node for ingest",
    (
        Metric("sender.reachable", "1", G, U8, 0, 1, "1 where ingest took the last request"),
        Metric("sender.queue", "By", G, U64, 0, None, "Waiting in memory"),
        Metric("sender.buffer", "By", G, U64, 0, None, "Waiting on disk while ingest is away"),
        Metric("sender.buffer.age", "s", G, F64, 0, None, "How long the oldest on disk has been waiting"),
        Metric("sender.dropped", "1", C, U64, 0, None, "Parts that were given up: no room, or too old"),
    ),
)
