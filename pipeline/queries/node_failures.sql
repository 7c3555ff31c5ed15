SELECT * FROM events WHERE kind = 'collector_failed' AND node = {node:String} ORDER BY at DESC, id LIMIT 1 BY code
