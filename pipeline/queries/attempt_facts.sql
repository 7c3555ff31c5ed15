SELECT * FROM attempt_facts
WHERE attempt IN {attempts:Array(String)}
ORDER BY attempt, node, at DESC
LIMIT 1 BY attempt, node
