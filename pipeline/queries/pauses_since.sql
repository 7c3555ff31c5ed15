SELECT * FROM (SELECT * FROM pauses ORDER BY at DESC LIMIT 1 BY hold)
WHERE new_state != 'ended' OR at > {since:DateTime64(6, 'UTC')}
ORDER BY starts_at, hold
