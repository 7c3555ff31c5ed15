SELECT {family:String} AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM {family:Identifier}
WHERE ts > {since:DateTime64(6, 'UTC')}
    AND (device_id, ts) IN (SELECT device_id, min(ts) FROM {family:Identifier} WHERE ts > {since:DateTime64(6, 'UTC')} GROUP BY device_id)
ORDER BY ts
