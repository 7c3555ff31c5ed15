WITH
    greatest(toUnixTimestamp64Micro(started_at), toUnixTimestamp64Micro({since:DateTime64(6, 'UTC')})) AS first_us,
    least(toUnixTimestamp64Micro(ended_at), toUnixTimestamp64Micro({until:DateTime64(6, 'UTC')})) AS last_us,
    {width:UInt32} * 1000000 AS width_us,
    arrayJoin(range(toUInt64(intDiv(first_us, width_us)), toUInt64(intDiv(last_us - 1, width_us)) + 1)) AS slot
SELECT
    toDateTime64(slot * {width:UInt32}, 6, 'UTC') AS at,
    category,
    max(ended_at) AS until,
    sum(least(last_us, toInt64((slot + 1) * width_us)) - greatest(first_us, toInt64(slot * width_us))) / 1e6 AS gpu_seconds
FROM ledger
WHERE ended_at > {since:DateTime64(6, 'UTC')} AND started_at < {until:DateTime64(6, 'UTC')}
    AND (run, attempt, part, generation) IN (
        SELECT run, attempt, part, max(generation) FROM ledger
        WHERE (run, attempt) IN (SELECT run, attempt FROM ledger WHERE ended_at > {since:DateTime64(6, 'UTC')})
        GROUP BY run, attempt, part
    )
GROUP BY at, category
ORDER BY at, category
