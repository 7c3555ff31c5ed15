SELECT min(ended_at) AS reached
FROM steps
WHERE run = {run:String} AND step >= {step:UInt64}
    AND (attempt IN {attempts:Array(String)} OR arrayExists(a -> startsWith(attempt, concat(a, '.')), {attempts:Array(String)}))
HAVING count() > 0
