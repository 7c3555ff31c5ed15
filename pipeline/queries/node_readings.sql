SELECT r.device_id AS device_id, d.name AS name, d.attrs AS attrs, r.ts AS ts, r.readings AS readings
FROM (
    SELECT device_id, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
    FROM (
        SELECT * FROM {family:Identifier}
        WHERE device_id IN (SELECT device_id FROM devices WHERE family = {family:String} AND node = {node:String})
            AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
        ORDER BY ts DESC
        LIMIT {passes:UInt32} BY device_id
    )
) AS r
INNER JOIN (
    SELECT device_id, argMax(devices.name, seen_at) AS name, argMax(devices.attrs, seen_at) AS attrs
    FROM devices WHERE family = {family:String} AND node = {node:String}
    GROUP BY device_id
) AS d ON d.device_id = r.device_id
ORDER BY name, device_id, ts
