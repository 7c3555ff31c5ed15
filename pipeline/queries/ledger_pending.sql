-- A run that was started again after its ledger was closed is pending once more.
SELECT r.run AS run
FROM (SELECT run, min(runs.at) AS began, max(runs.at) AS changed FROM runs GROUP BY run) AS r
LEFT JOIN (
    SELECT substring(job, length({prefix:String}) + 1) AS run, max(watermarks.at) AS closed
    FROM watermarks
    WHERE startsWith(job, {prefix:String})
    GROUP BY job
) AS w ON r.run = w.run
WHERE r.changed > w.closed
ORDER BY r.began
