SELECT key, uniqExact(finding) AS opened FROM findings WHERE key IN {keys:Array(String)} GROUP BY key
