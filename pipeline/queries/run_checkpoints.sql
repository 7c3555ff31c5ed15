SELECT run, max(events.at) AS at, argMax(code, events.at) AS step
FROM events
WHERE kind = {kind:String} AND run IN {runs:Array(String)}
GROUP BY run
