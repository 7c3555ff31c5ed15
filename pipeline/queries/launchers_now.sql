SELECT
    node,
    run,
    max(beats.at) AS heard_at,
    argMax(beats.attempt, beats.at) AS attempt,
    argMax(beats.state, beats.at) AS state,
    argMax(beats.ranks, beats.at) AS ranks
FROM beats
WHERE component = 'launcher' AND beats.at > {since:DateTime64(6, 'UTC')} AND beats.at <= {until:DateTime64(6, 'UTC')}
GROUP BY node, run
ORDER BY node, run
