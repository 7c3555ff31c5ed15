SELECT attempt, toUInt32(assumeNotNull(rank)) AS rank, min(events.at) AS at
FROM events
WHERE kind = {kind:String} AND run = {run:String} AND events.rank IS NOT NULL
GROUP BY attempt, rank
ORDER BY attempt, rank
