SELECT key, uniqExact(finding) AS opened, max(at) AS last FROM findings WHERE key IN {keys:Array(String)} GROUP BY key
