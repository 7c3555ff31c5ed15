SELECT * FROM (SELECT * FROM incidents ORDER BY at DESC LIMIT 1 BY incident)
WHERE new_state != 'resolved' OR resolved_at > {since:DateTime64(6, 'UTC')}
ORDER BY at
