SELECT
    run, started_at, ended_at,
    greatest(run_ranks, coalesce(attempt_ranks, 0)) AS ranks
FROM (
    SELECT
        run,
        min(at) AS started_at,
        if(argMax(new_state, at) = 'started', NULL, max(at)) AS ended_at,
        max(ranks) AS run_ranks
    FROM runs GROUP BY run
) AS r
LEFT JOIN (SELECT run, max(ranks) AS attempt_ranks FROM attempts GROUP BY run) AS a USING (run)
WHERE started_at < {until:DateTime64(6, 'UTC')} AND (ended_at IS NULL OR ended_at > {since:DateTime64(6, 'UTC')})
ORDER BY started_at, run
SETTINGS join_use_nulls = 1
