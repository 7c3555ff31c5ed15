SELECT
    run, attempt, began_at, exit_code,
    toUInt64(coalesce(steps, 0)) AS steps,
    coalesce(told, 0) > 0 AS recorded
FROM (
    SELECT
        run,
        attempt,
        min(at) AS began_at,
        argMax(tuple(attempts.exit_code), (new_state = 'ended', ifNull(attempts.exit_code != 0, false), at)).1 AS exit_code
    FROM attempts
    WHERE run IN {runs:Array(String)} AND new_state != 'issued'
    GROUP BY run, attempt
) AS a
LEFT JOIN (
    -- a restart inside an attempt is named <attempt>.<number>; the first ranks tell how far all came, and are found by the table's order
    SELECT run, replaceRegexpOne(attempt, '\\.[0-9]+$', '') AS attempt, uniqExact(step) AS steps
    FROM steps WHERE run IN {runs:Array(String)} AND rank < 8 GROUP BY run, attempt
) AS s USING (run, attempt)
LEFT JOIN (
    SELECT run, attempt, count() AS told FROM attempt_facts WHERE run IN {runs:Array(String)} GROUP BY run, attempt
) AS f USING (run, attempt)
ORDER BY began_at, attempt
SETTINGS join_use_nulls = 1
