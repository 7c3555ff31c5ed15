SELECT run, command
FROM (
    SELECT run, min(at) AS started_at, argMax(runs.command, (runs.command != '', at)) AS command
    FROM runs GROUP BY run
)
WHERE (started_at, run) <= (SELECT min(at), any(run) FROM runs WHERE run = {run:String})
ORDER BY run = {run:String} DESC, started_at DESC
LIMIT {limit:UInt32}
