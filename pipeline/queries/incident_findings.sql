SELECT * FROM findings WHERE incident = {incident:String} ORDER BY at
