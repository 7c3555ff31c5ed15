SELECT * FROM (SELECT * FROM actions ORDER BY at DESC LIMIT 1 BY action)
WHERE new_state IN ('proposed', 'waiting', 'issued', 'accepted')
    OR (incident != '' AND incident IN {incidents:Array(String)}) OR run IN {runs:Array(String)}
ORDER BY at
