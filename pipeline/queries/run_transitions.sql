SELECT * FROM runs WHERE run = {run:String} ORDER BY at
