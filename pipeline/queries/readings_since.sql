SELECT 'host' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM host WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'mount' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM mount WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'cgroup' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM cgroup WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'disk' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM disk WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'disk_health' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM disk_health WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'lustre_target' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM lustre_target WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'volume' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM volume WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'gpu' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM gpu WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'gpu_link' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM gpu_link WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'sched_node' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM sched_node WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'sched_job' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM sched_job WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'cache' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM cache WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
UNION ALL
SELECT 'region_link' AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM region_link WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
ORDER BY ts
