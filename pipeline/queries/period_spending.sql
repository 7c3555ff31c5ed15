SELECT
    run, category, incident,
    sum(
        least(toUnixTimestamp64Micro(ended_at), toUnixTimestamp64Micro({until:DateTime64(6, 'UTC')}))
        - greatest(toUnixTimestamp64Micro(started_at), toUnixTimestamp64Micro({since:DateTime64(6, 'UTC')}))
    ) AS gpu_micros
FROM ledger
WHERE ended_at > {since:DateTime64(6, 'UTC')} AND started_at < {until:DateTime64(6, 'UTC')}
    AND (run, attempt, part, generation) IN (
        SELECT run, attempt, part, max(generation) FROM ledger
        WHERE (run, attempt) IN (SELECT run, attempt FROM ledger WHERE ended_at > {since:DateTime64(6, 'UTC')})
        GROUP BY run, attempt, part
    )
GROUP BY run, category, incident
ORDER BY run, category, incident
