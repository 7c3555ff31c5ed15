SELECT * FROM events
WHERE kind = {kind:String} AND run = {run:String} AND (attempt = {attempt:String} OR startsWith(attempt, concat({attempt:String}, '.')))
    AND events.rank IS NOT NULL
ORDER BY at DESC
LIMIT 1 BY attempt, rank
LIMIT 1024
