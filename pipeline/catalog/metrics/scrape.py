"""Other programs' pages that the agent scrapes, and what is known only from them."""

from pipeline.catalog.metric import F64, U8, U32, U64, C, Family, G, Metric

SCRAPE = Family(
    "scrape",
    ("node", "target"),
    "A page of another program that the node's agent scrapes",
    (
        Metric("scrape.ok", "1", G, U8, 0, 1, "1 where the last pass brought the page, 0 where it failed or hung"),
        Metric("scrape.time", "s", G, F64, 0, None, "How long the last pass took, or has taken so far"),
        Metric("scrape.samples", "1", G, U32, 0, None, "Values on the page"),
        Metric("scrape.rejected", "1", C, U64, 0, None, "Lines that could not be read, and values too old to be believed"),
        Metric("scrape.dropped", "1", C, U64, 0, None, "Values left out because the target has more series than it may have"),
        Metric("scrape.last_success", "s", G, F64, 0, None, "When the page was last brought, seconds since 1970"),
    ),
)

ROLLOUT_ENGINE = Family(
    "rollout_engine",
    ("node", "engine"),
    "An inference engine that a rollout uses",
    (
        Metric("rollout_engine.running", "1", G, U32, 0, None, "Requests being worked on"),
        Metric("rollout_engine.waiting", "1", G, U32, 0, None, "Requests that wait for a place"),
        Metric("rollout_engine.cache.used", "1", G, F64, 0, 1, "How much of the key-value cache is in use"),
        Metric("rollout_engine.preemptions", "1", C, U64, 0, None, "Requests thrown out of the cache, to be begun anew"),
        Metric("rollout_engine.tokens.prompt", "1", C, U64, 0, None, "Tokens of prompts taken in"),
        Metric("rollout_engine.tokens.generated", "1", C, U64, 0, None, "Tokens generated"),
        Metric("rollout_engine.finished", "1", C, U64, 0, None, "Requests that ended well, for whatever reason"),
    ),
)
