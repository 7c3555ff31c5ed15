SELECT * FROM changes
WHERE at >= {since:DateTime64(6, 'UTC')} AND at < {until:DateTime64(6, 'UTC')}
ORDER BY at DESC, id
LIMIT 1 BY id
LIMIT 1000
