SELECT * FROM (SELECT * FROM actions ORDER BY at DESC LIMIT 1 BY action) ORDER BY at DESC, action LIMIT {limit:UInt32}
