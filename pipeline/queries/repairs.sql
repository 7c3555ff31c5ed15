SELECT
    incident,
    coalesce(last_onset, last_detected_at, opened_at) AS onset,
    last_recovered_at AS recovered,
    last_caught_up_at AS caught_up,
    if(last_state = 'resolved', coalesce(last_resolved_at, last_at), NULL) AS resolved
FROM (
    SELECT
        incident,
        min(at) AS opened_at,
        max(at) AS last_at,
        max(merged_into) AS merged,  -- its time is counted with the one that it turned out to be
        -- in tuples, as argMax passes over the rows whose bare argument is NULL
        argMax(tuple(new_state, onset, detected_at, recovered_at, caught_up_at, resolved_at), at) AS last,
        last.1 AS last_state,
        last.2 AS last_onset,
        last.3 AS last_detected_at,
        last.4 AS last_recovered_at,
        last.5 AS last_caught_up_at,
        last.6 AS last_resolved_at
    FROM incidents
    GROUP BY incident
)
WHERE merged = '' AND (resolved IS NULL OR resolved >= {since:DateTime64(6, 'UTC')})
ORDER BY onset, incident
