SELECT
    (SELECT count() FROM runs) AS runs,
    (SELECT count() FROM attempts) AS attempts,
    (SELECT count() FROM events) AS events,
    (SELECT count() FROM requests) AS requests,
    (SELECT count() FROM beats WHERE component = 'launcher' AND at > {since:DateTime64(6, 'UTC')}) AS launchers
