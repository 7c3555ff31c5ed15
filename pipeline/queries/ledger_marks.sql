WITH toUnixTimestamp64Micro({start:DateTime64(6, 'UTC')}) AS start_us, toInt64({width:Float64} * 1e6) AS width_us
SELECT attempt, part, sum(is_step) AS steps, countIf(is_step = 0) AS phases, max(number) AS last_step, max(ended) AS last_at
FROM (
    SELECT attempt, greatest(0, intDiv(toUnixTimestamp64Micro(ended_at) - start_us, width_us)) AS part, 1 AS is_step, step AS number, ended_at AS ended
    FROM steps WHERE run = {run:String}
    UNION ALL
    SELECT attempt, greatest(0, intDiv(toUnixTimestamp64Micro(at) - start_us, width_us)) AS part, 0 AS is_step, toUInt64(0) AS number, at AS ended
    FROM events WHERE kind = 'phase' AND run = {run:String}
)
GROUP BY attempt, part
ORDER BY attempt, part
