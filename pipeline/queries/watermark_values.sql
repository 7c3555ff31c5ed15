SELECT job, argMax(watermarks.value, watermarks.at) AS value FROM watermarks WHERE startsWith(job, {prefix:String}) GROUP BY job
