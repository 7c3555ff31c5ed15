SELECT * FROM notifications WHERE incident = {incident:String} ORDER BY at
