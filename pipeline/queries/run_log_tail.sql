SELECT * FROM (
    SELECT
        toDateTime64(Timestamp, 6, 'UTC') AS at,
        ResourceAttributes['host.name'] AS node,
        LogAttributes['attempt'] AS attempt,
        LogAttributes['rank'] AS rank,
        substringUTF8(Body, 1, 2000) AS text
    FROM logs
    WHERE ServiceName = 'surefoot.run' AND LogAttributes['run'] = {run:String}
    ORDER BY Timestamp DESC
    LIMIT {lines:UInt32}
) ORDER BY at
