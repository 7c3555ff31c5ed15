SELECT
    countIf(NOT is_first) AS steps,
    quantileExactOrNullIf(0.5)(seconds, NOT is_first) AS median,
    quantileExactOrNullIf(0.99)(seconds, NOT is_first) AS p99,
    maxOrNull(seconds) AS longest
FROM (
    SELECT
        dateDiff('microsecond', started_at, ended_at) / 1e6
            - ifNull(init, 0) - ifNull(load_checkpoint, 0) - ifNull(compile, 0) - ifNull(checkpoint, 0) - ifNull(eval, 0) AS seconds,
        step = min(step) OVER (PARTITION BY attempt, rank) AS is_first
    FROM (
        SELECT * FROM steps
        WHERE run = {run:String} AND rank < 4 AND ended_at > {since:DateTime64(6, 'UTC')}
        ORDER BY ended_at DESC
        LIMIT {limit:UInt32}
    )
)
