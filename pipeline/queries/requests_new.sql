SELECT * FROM requests
WHERE at > {since:DateTime64(6, 'UTC')} AND intent NOT IN (SELECT value FROM watermarks WHERE job = {job:String})
ORDER BY at, intent
LIMIT 1 BY intent
