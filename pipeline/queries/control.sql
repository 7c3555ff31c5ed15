-- What the leader has issued for some runs and no launcher has taken up yet: actions, and attempts to start.
-- The last transition of each tells its state. One row more holds the highest term that any action carries.
SELECT source, run, id, kind, attempt, new_attempt, launch, grace, deadline, reason, term
FROM
(
    SELECT
        'action' AS source, a.run AS run, a.action AS id, argMax(a.kind, a.at) AS kind, argMax(a.attempt, a.at) AS attempt,
        argMax(a.new_attempt, a.at) AS new_attempt, argMax(a.launch, a.at) AS launch, argMax(a.grace, a.at) AS grace,
        tupleElement(argMax(tuple(a.deadline), a.at), 1) AS deadline, argMax(a.reason, a.at) AS reason, argMax(a.term, a.at) AS term,
        argMax(a.new_state, a.at) AS state, max(a.at) AS changed
    FROM actions AS a
    WHERE a.run IN {runs:Array(String)}
    GROUP BY a.run, a.action
    UNION ALL
    SELECT
        'attempt' AS source, b.run AS run, b.attempt AS id, '' AS kind, '' AS attempt,
        '' AS new_attempt, argMax(b.launch, b.at) AS launch, 0. AS grace,
        NULL AS deadline, argMax(b.reason, b.at) AS reason, toUInt64(0) AS term,
        argMax(b.new_state, b.at) AS state, max(b.at) AS changed
    FROM attempts AS b
    WHERE b.run IN {runs:Array(String)}
    GROUP BY b.run, b.attempt
    UNION ALL
    SELECT
        'term' AS source, '' AS run, '' AS id, '' AS kind, '' AS attempt,
        '' AS new_attempt, toUInt32(0) AS launch, 0. AS grace,
        NULL AS deadline, '' AS reason, max(c.term) AS term,
        'issued' AS state, toDateTime64(0, 6, 'UTC') AS changed
    FROM actions AS c
)
WHERE state = 'issued'
ORDER BY changed, id
