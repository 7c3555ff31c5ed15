SELECT device_id, argMax(attrs, seen_at) AS attrs FROM devices WHERE device_id IN {ids:Array(UInt64)} GROUP BY device_id
