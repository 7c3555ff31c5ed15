SELECT node, groupArray(8)(tuple(attrs['mount_point'], attrs['type'], used)) AS mounts
FROM (
    SELECT r.node AS node, d.attrs AS attrs, 1 - r.free / r.size AS used
    FROM (
        SELECT
            device_id,
            any(mount.node) AS node,
            argMax(mount.size, ts) AS size,
            argMax(mount.free, ts) AS free,
            argMax(mount.read_only, ts) AS read_only
        FROM mount
        WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
        GROUP BY device_id
        HAVING size > 0 AND ifNull(read_only, 0) = 0 AND isNotNull(free)
    ) AS r
    INNER JOIN (
        SELECT device_id, argMax(devices.attrs, seen_at) AS attrs FROM devices WHERE family = 'mount' GROUP BY device_id
    ) AS d ON d.device_id = r.device_id
    ORDER BY node, used DESC, attrs['mount_point']
)
GROUP BY node
ORDER BY node
