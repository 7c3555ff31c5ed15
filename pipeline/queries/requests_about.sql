SELECT * FROM requests WHERE target IN {targets:Array(String)} ORDER BY at LIMIT 1 BY intent
