SELECT
    attempt,
    rank,
    argMin(steps.step, steps.ended_at) AS step,
    min(steps.started_at) AS started_at,
    min(steps.ended_at) AS ended_at,
    max(steps.ended_at) AS last_ended_at
FROM steps
WHERE run = {run:String} AND steps.ended_at <= {until:DateTime64(6, 'UTC')}
GROUP BY attempt, rank
ORDER BY attempt, rank
