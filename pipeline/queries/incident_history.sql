SELECT * FROM incidents WHERE incident = {incident:String} ORDER BY at
