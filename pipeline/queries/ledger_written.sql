SELECT attempt, part, max(ledger.generation) AS generation, argMax(ended_at, (ledger.generation, ended_at)) AS until
FROM ledger
WHERE run = {run:String}
GROUP BY attempt, part
ORDER BY attempt, part
