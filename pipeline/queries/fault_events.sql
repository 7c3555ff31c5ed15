SELECT * FROM events
WHERE kind IN {kinds:Array(String)} AND at > {since:DateTime64(6, 'UTC')} AND at <= {until:DateTime64(6, 'UTC')}
ORDER BY at, id
LIMIT 1 BY id
