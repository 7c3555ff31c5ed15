-- `ends` holds each run's last step; as a constant it keeps all rows but the last few from being read whole (a join does not).
WITH (
    SELECT (groupArray(toString(run)), groupArray(last)) FROM (
        SELECT run, max(ended_at) AS last FROM steps WHERE run IN {runs:Array(String)} GROUP BY run
    )
) AS ends
SELECT
    run,
    argMax(steps.step, ended_at) AS step,
    max(ended_at) AS at,
    quantile(0.5)((toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6) AS step_seconds,
    argMax(steps.loss, ended_at) AS loss
FROM steps
WHERE run IN {runs:Array(String)} AND ended_at > ends.2[indexOf(ends.1, run)] - toIntervalSecond({seconds:UInt32})
GROUP BY run
