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
    ),
)
