SELECT * FROM (SELECT * FROM incidents ORDER BY at DESC LIMIT 1 BY incident)
ORDER BY
    new_state = 'resolved',
    if(new_state = 'resolved', 0, indexOf({severities:Array(String)}, severity)),
    at DESC
LIMIT {limit:UInt32}
