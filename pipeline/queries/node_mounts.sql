SELECT r.slot AS slot, d.attrs['mount_point'] AS mount_point, d.attrs['type'] AS kind, r.used AS used
FROM (
    SELECT
        device_id,
        toStartOfInterval(ts, toIntervalSecond({width:UInt32}), 'UTC') AS slot,
        1 - sum(mount.free) / nullIf(sumIf(mount.size, isNotNull(mount.free)), 0) AS used
    FROM mount
    WHERE device_id IN (SELECT device_id FROM devices WHERE family = 'mount' AND node = {node:String})
        AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
    GROUP BY device_id, slot
    HAVING isNotNull(used)
) AS r
INNER JOIN (
    SELECT device_id, argMax(devices.attrs, seen_at) AS attrs
    FROM devices WHERE family = 'mount' AND node = {node:String}
    GROUP BY device_id
) AS d ON d.device_id = r.device_id
ORDER BY slot, mount_point
