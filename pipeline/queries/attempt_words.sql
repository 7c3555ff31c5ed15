SELECT substringUTF8(Body, 1, 500) AS text
FROM logs
WHERE ServiceName = 'surefoot.run' AND LogAttributes['attempt'] = {attempt:String} AND ResourceAttributes['host.name'] = {node:String}
    AND Timestamp BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
    AND multiSearchAny(Body, {words:Array(String)})
ORDER BY Timestamp DESC
LIMIT 10
