SELECT component, node, run, max(beats.at) AS at, argMax(beats.state, beats.at) AS state
FROM beats WHERE beats.at > {since:DateTime64(6, 'UTC')}
GROUP BY component, node, run
UNION ALL
SELECT 'agent' AS component, node, '' AS run, max(ts) AS at, '' AS state
FROM host WHERE ts > {since:DateTime64(6, 'UTC')}
GROUP BY node
