SELECT * FROM attempts WHERE run IN {runs:Array(String)} ORDER BY run, launch, at
