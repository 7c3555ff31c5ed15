SELECT run
FROM runs
WHERE concat({prefix:String}, run) NOT IN (SELECT job FROM watermarks WHERE startsWith(job, {prefix:String}))
GROUP BY run
ORDER BY min(runs.at)
