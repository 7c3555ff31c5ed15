SELECT * FROM beats
WHERE component IN ('launcher', 'ingest') AND at > {since:DateTime64(6, 'UTC')}
ORDER BY at DESC
LIMIT 1 BY component, run, node
