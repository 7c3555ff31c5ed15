SELECT
    attempt,
    any(launched_at) AS launched_at,
    any(world) AS ranks,
    min(first_at) AS first_step_at,
    max(first_at) AS all_first_step_at,
    count(first_at) AS ranks_with_steps
FROM (
    SELECT attempt, minIf(at, new_state = 'starting') AS launched_at, max(ranks) AS world
    FROM attempts WHERE run = {run:String} GROUP BY attempt
) AS a
LEFT JOIN (
    SELECT attempt, rank, min(ended_at) AS first_at FROM steps WHERE run = {run:String} GROUP BY attempt, rank
) AS s USING (attempt)
GROUP BY attempt
ORDER BY launched_at
SETTINGS join_use_nulls = 1
