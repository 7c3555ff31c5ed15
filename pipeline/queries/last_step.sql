SELECT max(step) AS last
FROM steps
WHERE run = {run:String}
    AND (attempt IN {attempts:Array(String)} OR arrayExists(a -> startsWith(attempt, concat(a, '.')), {attempts:Array(String)}))
HAVING count() > 0
