SELECT slot, max(busy) AS busiest, min(busy) AS idlest, max(used) AS fullest
FROM (
    SELECT
        device_id,
        toStartOfInterval(ts, toIntervalSecond({width:UInt32}), 'UTC') AS slot,
        avg(gpu.utilization) AS busy,
        sum(gpu.memory_used) / nullIf(sumIf(gpu.memory_total, isNotNull(gpu.memory_used)), 0) AS used
    FROM gpu
    WHERE device_id IN (SELECT device_id FROM devices WHERE family = 'gpu' AND node = {node:String})
        AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
    GROUP BY device_id, slot
)
GROUP BY slot
HAVING isNotNull(busiest) OR isNotNull(fullest)
ORDER BY slot
