WITH
    (
        SELECT (min(step), greatest(toUInt64(1), toUInt64(ceil((max(step) - min(step) + 1) / {bins:UInt32})))) FROM steps
        WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
    ) AS cut,
    (
        SELECT (groupArray(toString(attempt)), groupArray(first)) FROM (
            SELECT attempt, min(step) AS first FROM steps WHERE run = {run:String} GROUP BY attempt
        )
    ) AS firsts,
    (toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6 AS duration
SELECT
    rank,
    attempt,
    cut.1 + intDiv(steps.step - cut.1, cut.2) * cut.2 AS step,
    avg(duration) AS seconds,
    max(duration) AS longest
FROM steps
WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
    AND rank IN (
        SELECT rank FROM steps
        WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
        GROUP BY rank ORDER BY sum(toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / count() DESC, rank
        LIMIT {ranks:UInt32}
    )
    AND steps.step != firsts.2[indexOf(firsts.1, attempt)]
GROUP BY rank, attempt, step
ORDER BY rank, attempt, step
