SELECT * FROM incidents WHERE run = {run:String} ORDER BY at
