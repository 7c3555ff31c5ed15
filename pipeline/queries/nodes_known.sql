SELECT node, uniqExactIf(device_id, family = 'gpu') AS gpus
FROM devices WHERE family IN ('host', 'gpu') AND node != ''
GROUP BY node
ORDER BY node
