SELECT
    run, state, reason, started_at, changed_at, node, command, exit_code,
    attempt, attempt_state, launches, greatest(run_ranks, attempt_ranks, started) AS ranks
FROM (
    SELECT
        run,
        argMax(new_state, at) AS state,
        argMax(runs.reason, at) AS reason,
        min(at) AS started_at,
        max(at) AS changed_at,
        argMax(runs.node, at) AS node,
        argMax(runs.command, (runs.command != '', at)) AS command,
        argMax(runs.exit_code, at) AS exit_code,
        max(ranks) AS run_ranks
    FROM runs WHERE {run:String} IN ('', runs.run) GROUP BY run
) AS r
LEFT JOIN (
    SELECT
        run,
        argMax(attempts.attempt, (launch, at)) AS attempt,
        argMax(new_state, (launch, at)) AS attempt_state,
        max(launch) AS launches,
        argMax(ranks, (ranks > 0, launch, at)) AS attempt_ranks
    FROM attempts WHERE {run:String} IN ('', attempts.run) GROUP BY run
) AS a USING (run)
LEFT JOIN (
    -- what the launchers of all its nodes saw start; a restart inside an attempt is named <attempt>.<number>
    SELECT run, replaceRegexpOne(attempt, '\\.[0-9]+$', '') AS attempt, toUInt64(max(assumeNotNull(rank))) + 1 AS started
    FROM events WHERE kind = 'rank_started' AND isNotNull(rank) AND {run:String} IN ('', events.run) GROUP BY run, attempt
) AS s USING (run, attempt)
ORDER BY state != 'started', started_at DESC
LIMIT {limit:UInt32}
