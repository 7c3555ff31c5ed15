SELECT a.attempt AS attempt, a.new_attempt AS new_attempt, a.issued_at AS at, f.fault AS fault, f.node AS node, f.rank AS rank, s.last_step AS last_step
FROM (
    SELECT action, any(actions.attempt) AS attempt, any(actions.new_attempt) AS new_attempt, min(actions.at) AS issued_at
    FROM actions
    WHERE run = {run:String} AND kind = {kind:String} AND new_state = 'issued'
    GROUP BY action
    HAVING issued_at > {since:DateTime64(6, 'UTC')}
) AS a
LEFT JOIN (
    SELECT findings.attempt AS attempt, argMin(findings.fault, (findings.at, finding)) AS fault,
        argMin(findings.node, (findings.at, finding)) AS node, argMin(tuple(findings.rank), (findings.at, finding)).1 AS rank
    FROM findings
    WHERE run = {run:String} AND findings.attempt != '' AND findings.fault NOT IN {besides:Array(String)}
    GROUP BY findings.attempt
) AS f ON a.attempt = f.attempt
LEFT JOIN (
    SELECT steps.attempt AS attempt, toNullable(max(step)) AS last_step FROM steps WHERE run = {run:String} GROUP BY steps.attempt
) AS s ON a.attempt = s.attempt
ORDER BY at
