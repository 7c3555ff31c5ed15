SELECT 'mount' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM mount
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM mount WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
UNION ALL
SELECT 'rdma_port' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM rdma_port
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM rdma_port WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
UNION ALL
SELECT 'netdev' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM netdev
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM netdev WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
UNION ALL
SELECT 'gpu_link' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM gpu_link
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM gpu_link WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
UNION ALL
SELECT 'sched_node' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM sched_node
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM sched_node WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
UNION ALL
SELECT 'disk_health' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM disk_health
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM disk_health WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
ORDER BY ts
