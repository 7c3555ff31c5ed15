WITH (
    SELECT (min(step), greatest(toUInt64(1), toUInt64(ceil((max(step) - min(step) + 1) / {bins:UInt32}))), min(rank)) FROM steps
    WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
        AND (loss IS NOT NULL OR position(nonfinite, 'loss') > 0)
) AS cut
SELECT
    attempt,
    cut.1 + intDiv(steps.step - cut.1, cut.2) * cut.2 AS step,
    avg(steps.loss) AS loss,
    countIf(position(steps.nonfinite, 'loss') > 0) AS nonfinite
FROM steps
WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
    AND rank = cut.3 AND (steps.loss IS NOT NULL OR position(steps.nonfinite, 'loss') > 0)
GROUP BY attempt, step
ORDER BY attempt, step
