SELECT * FROM live
WHERE run IN {runs:Array(String)} AND node = {node:String} AND at > {since:DateTime64(6, 'UTC')} AND at <= {until:DateTime64(6, 'UTC')}
ORDER BY at DESC
LIMIT 1 BY run, rank
LIMIT 256
