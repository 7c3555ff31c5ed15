SELECT device_id, 'rdma_port.link_downs' AS metric, link_downs AS value, min(ts) AS first, max(ts) AS last
FROM rdma_port WHERE ts > {since:DateTime64(6, 'UTC')} AND link_downs IS NOT NULL GROUP BY device_id, link_downs
UNION ALL
SELECT device_id, 'rdma_port.link_recoveries' AS metric, link_recoveries AS value, min(ts) AS first, max(ts) AS last
FROM rdma_port WHERE ts > {since:DateTime64(6, 'UTC')} AND link_recoveries IS NOT NULL GROUP BY device_id, link_recoveries
UNION ALL
SELECT device_id, 'rdma_port.symbol_errors' AS metric, symbol_errors AS value, min(ts) AS first, max(ts) AS last
FROM rdma_port WHERE ts > {since:DateTime64(6, 'UTC')} AND symbol_errors IS NOT NULL GROUP BY device_id, symbol_errors
UNION ALL
SELECT device_id, 'rdma_port.integrity_errors' AS metric, integrity_errors AS value, min(ts) AS first, max(ts) AS last
FROM rdma_port WHERE ts > {since:DateTime64(6, 'UTC')} AND integrity_errors IS NOT NULL GROUP BY device_id, integrity_errors
UNION ALL
SELECT device_id, 'netdev.carrier_changes' AS metric, carrier_changes AS value, min(ts) AS first, max(ts) AS last
FROM netdev WHERE ts > {since:DateTime64(6, 'UTC')} AND carrier_changes IS NOT NULL GROUP BY device_id, carrier_changes
UNION ALL
SELECT device_id, 'netdev.crc_errors' AS metric, crc_errors AS value, min(ts) AS first, max(ts) AS last
FROM netdev WHERE ts > {since:DateTime64(6, 'UTC')} AND crc_errors IS NOT NULL GROUP BY device_id, crc_errors
UNION ALL
SELECT device_id, 'netdev.symbol_errors' AS metric, symbol_errors AS value, min(ts) AS first, max(ts) AS last
FROM netdev WHERE ts > {since:DateTime64(6, 'UTC')} AND symbol_errors IS NOT NULL GROUP BY device_id, symbol_errors
