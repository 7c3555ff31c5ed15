SELECT toUInt32(assumeNotNull(rank)) AS rank, code AS phase, at AS ended_at, assumeNotNull(duration) AS seconds
FROM events
WHERE kind = {kind:String} AND run = {run:String} AND attempt = {attempt:String} AND events.rank IS NOT NULL AND duration IS NOT NULL
ORDER BY rank, at
