SELECT * FROM events
WHERE kind = {kind:String} AND run = {run:String} AND (attempt = {attempt:String} OR startsWith(attempt, concat({attempt:String}, '.')))
ORDER BY rank, at
LIMIT 1 BY id
LIMIT 256
