SELECT
    category,
    incident,
    sum(toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6 AS gpu_seconds,
    max(ended_at) AS until
FROM ledger
WHERE run = {run:String}
    AND (run, attempt, part, generation) IN (
        SELECT run, attempt, part, max(generation) FROM ledger WHERE run = {run:String} GROUP BY run, attempt, part
    )
GROUP BY category, incident
ORDER BY gpu_seconds DESC
