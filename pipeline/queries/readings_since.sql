SELECT {family:String} AS family, device_id, node, ts, toJSONString(tuple(* EXCEPT (device_id, node, ts))) AS readings
FROM {family:Identifier} WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
ORDER BY ts
