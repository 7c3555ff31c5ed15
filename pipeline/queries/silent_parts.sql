WITH
    toUnixTimestamp64Micro({since:DateTime64(6, 'UTC')}) AS since_us,
    {limit:Float64} * 1e6 AS limit_us
SELECT
    name,
    max(last) AS last_heard,
    sumIf(first_us - greatest(before_us, since_us), long) / 1e6 AS silent,
    countIf(long) AS gaps
FROM (
    SELECT
        name,
        last,
        toUnixTimestamp64Micro(first) AS first_us,
        lagInFrame(toUnixTimestamp64Micro(last), 1, toUnixTimestamp64Micro(first))
            OVER (PARTITION BY name ORDER BY minute ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before_us,
        first_us - before_us > limit_us AND first_us > since_us AS long
    FROM (
        SELECT component AS name, toStartOfMinute(at) AS minute, min(at) AS first, max(at) AS last
        FROM beats
        WHERE component IN ('jobs', 'ingest') AND at > {since:DateTime64(6, 'UTC')} - toIntervalSecond({lead:UInt32}) AND at < {until:DateTime64(6, 'UTC')}
        GROUP BY name, minute
    )
)
GROUP BY name
ORDER BY name
