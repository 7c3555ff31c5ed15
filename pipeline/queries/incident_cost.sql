SELECT
    category,
    sum(toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6 AS gpu_seconds
FROM ledger
WHERE incident = {incident:String}
    AND (run, attempt, part, generation) IN (
        SELECT run, attempt, part, max(generation) FROM ledger
        WHERE (run, attempt) IN (SELECT run, attempt FROM ledger WHERE incident = {incident:String})
        GROUP BY run, attempt, part
    )
GROUP BY category
ORDER BY gpu_seconds DESC
