SELECT r.node AS node, d.attrs['collector'] AS collector, r.ok_at AS ok_at
FROM (
    SELECT device_id, any(agent.node) AS node, argMax(collect_ok, ts) AS ok, argMax(last_success, ts) AS ok_at
    FROM agent
    WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
    GROUP BY device_id
    HAVING ok = 0
) AS r
INNER JOIN (
    SELECT device_id, argMax(devices.attrs, seen_at) AS attrs FROM devices WHERE family = 'agent' GROUP BY device_id
) AS d ON d.device_id = r.device_id
ORDER BY node, collector
