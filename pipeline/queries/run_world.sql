SELECT max(ranks) AS ranks
FROM (
    SELECT toUInt64(max(attempts.ranks)) AS ranks FROM attempts WHERE run = {run:String}
    UNION ALL
    SELECT toUInt64(max(runs.ranks)) AS ranks FROM runs WHERE run = {run:String}
    UNION ALL
    SELECT if(count(rank) = 0, 0, toUInt64(assumeNotNull(max(rank))) + 1) AS ranks FROM events WHERE kind = 'rank_started' AND run = {run:String}
    UNION ALL
    SELECT if(count() = 0, 0, toUInt64(max(rank)) + 1) AS ranks FROM live WHERE run = {run:String}
    UNION ALL
    SELECT if(count() = 0, 0, toUInt64(max(rank)) + 1) AS ranks FROM steps WHERE run = {run:String}
)
