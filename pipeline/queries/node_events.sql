SELECT * FROM events
WHERE node = {node:String} AND at > {since:DateTime64(6, 'UTC')} AND kind NOT IN {without:Array(String)}
ORDER BY at DESC, id
LIMIT 1 BY id
LIMIT {limit:UInt32}
