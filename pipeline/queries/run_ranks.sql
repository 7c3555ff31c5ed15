SELECT * FROM (
    SELECT * FROM live
    WHERE run = {run:String} AND (attempt = {attempt:String} OR startsWith(attempt, concat({attempt:String}, '.')))
    ORDER BY at DESC LIMIT 1 BY rank
) ORDER BY since, rank LIMIT 64
