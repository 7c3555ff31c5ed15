SELECT phase, max(took) AS seconds
FROM (
    SELECT toString(code) AS phase, assumeNotNull(duration) AS took
    FROM events
    WHERE kind = {kind:String} AND run = {run:String} AND at > {since:DateTime64(6, 'UTC')} AND duration IS NOT NULL
    UNION ALL
    SELECT p.1 AS phase, assumeNotNull(p.2) AS took
    FROM (
        SELECT arrayJoin([
            ('init', max(init)),
            ('load_checkpoint', max(load_checkpoint)),
            ('compile', max(compile)),
            ('checkpoint', max(checkpoint)),
            ('eval', max(eval)),
            ('rollout', max(rollout)),
            ('reward', max(reward)),
            ('reference', max(reference)),
            ('weight_sync', max(weight_sync))
        ]) AS p
        FROM steps
        WHERE run = {run:String} AND rank < 4 AND ended_at > {since:DateTime64(6, 'UTC')}
    )
    WHERE p.2 IS NOT NULL
)
GROUP BY phase
