SELECT
    run,
    argMax(new_state, at) AS state,
    argMax(runs.reason, at) AS reason,
    argMax(runs.node, at) AS node,
    argMax(runs.exit_code, at) AS exit_code,
    argMax(runs.checkpoints, at) AS checkpoints,
    min(at) AS started_at,
    max(at) AS changed_at
FROM runs
GROUP BY run
HAVING state = 'started' OR changed_at > {since:DateTime64(6, 'UTC')} OR run IN {names:Array(String)}
ORDER BY run
