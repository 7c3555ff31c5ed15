SELECT DISTINCT attempt FROM steps WHERE run IN {runs:Array(String)} AND attempt IN {attempts:Array(String)}
