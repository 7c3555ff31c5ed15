SELECT
    run,
    argMax(steps.step, ended_at) AS step,
    max(ended_at) AS at,
    if(countIf(ended_at > {since:DateTime64(6, 'UTC')}) = 0, NULL, quantileIf(0.5)(
        (toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6, ended_at > {since:DateTime64(6, 'UTC')}
    )) AS step_seconds,
    argMax(steps.loss, ended_at) AS loss
FROM steps
WHERE run IN {runs:Array(String)}
GROUP BY run
