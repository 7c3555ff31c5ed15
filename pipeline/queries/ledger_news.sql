SELECT max(latest) AS at
FROM (
    SELECT max(at) AS latest FROM runs
    UNION ALL SELECT max(at) AS latest FROM attempts
    UNION ALL SELECT max(at) AS latest FROM incidents
)
