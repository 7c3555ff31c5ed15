SELECT
    (SELECT count() FROM runs) AS runs,
    (SELECT count() FROM attempts) AS attempts,
    (SELECT count() FROM events) AS events,
    (SELECT count() FROM requests) AS requests,
    -- of the tables themselves, not their views: only those know their count without reading
    (SELECT count() FROM host_raw) + (SELECT count() FROM mount_raw) + (SELECT count() FROM cgroup_raw) AS readings,
    (SELECT count() FROM beats WHERE component = 'launcher' AND at > {since:DateTime64(6, 'UTC')}) AS launchers
