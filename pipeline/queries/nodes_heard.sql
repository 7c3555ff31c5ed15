SELECT node, max(ts) AS at
FROM host
WHERE (empty({ids:Array(UInt64)}) OR device_id IN {ids:Array(UInt64)})
    AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
GROUP BY node
ORDER BY node
