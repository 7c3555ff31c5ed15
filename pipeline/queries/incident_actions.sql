SELECT * FROM actions WHERE incident = {incident:String} ORDER BY at
