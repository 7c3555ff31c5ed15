SELECT * FROM slo_results
WHERE at >= {since:DateTime64(6, 'UTC')}
ORDER BY figure, window_seconds, at DESC
LIMIT 1 BY figure, window_seconds
