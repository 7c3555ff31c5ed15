-- What the leader has issued for some runs and launchers may not have taken up yet: actions under way, and attempts to start.
-- The last transition of each tells its state. Of several launchers each takes up an action by itself, the slowest after
-- the first has; and each starts an attempt by itself. A row each tells how a run ended, and one more the highest term that any action carries.
SELECT source, run, id, kind, attempt, new_attempt, launch, grace, deadline, reason, term, nodes, master, resume, since
FROM
(
    SELECT
        'action' AS source, a.run AS run, a.action AS id, argMax(a.kind, a.at) AS kind, argMax(a.attempt, a.at) AS attempt,
        argMax(a.new_attempt, a.at) AS new_attempt, argMax(a.launch, a.at) AS launch, argMax(a.grace, a.at) AS grace,
        tupleElement(argMax(tuple(a.deadline), a.at), 1) AS deadline, argMax(a.reason, a.at) AS reason, argMax(a.term, a.at) AS term,
        argMax(a.new_state, a.at) AS state, max(a.at) AS changed, min(a.at) AS since, '' AS nodes, '' AS master, '' AS resume
    FROM actions AS a
    WHERE a.run IN {runs:Array(String)}
    GROUP BY a.run, a.action
    HAVING state IN ('issued', 'accepted')
    UNION ALL
    SELECT
        'attempt' AS source, b.run AS run, b.attempt AS id, '' AS kind, '' AS attempt,
        '' AS new_attempt, argMax(b.launch, b.at) AS launch, 0. AS grace,
        NULL AS deadline, argMax(b.reason, b.at) AS reason, toUInt64(0) AS term,
        argMax(b.new_state, b.at) AS state, max(b.at) AS changed, min(b.at) AS since,
        argMax(b.nodes, (b.nodes != '', b.at)) AS nodes, argMax(b.master, (b.master != '', b.at)) AS master,
        argMax(b.resume_from, (b.new_state = 'issued', b.at)) AS resume
    FROM attempts AS b
    WHERE b.run IN {runs:Array(String)}
    GROUP BY b.run, b.attempt
    HAVING state = 'issued' OR (nodes != '' AND state IN ('starting', 'running'))
    UNION ALL
    SELECT
        'end' AS source, d.run AS run, '' AS id, '' AS kind, '' AS attempt,
        '' AS new_attempt, toUInt32(0) AS launch, 0. AS grace,
        NULL AS deadline, argMax(d.reason, d.at) AS reason, toUInt64(0) AS term,
        argMax(d.new_state, d.at) AS state, max(d.at) AS changed, changed AS since, '' AS nodes, '' AS master, '' AS resume
    FROM runs AS d
    WHERE d.run IN {runs:Array(String)}
    GROUP BY d.run
    HAVING state != 'started'
    UNION ALL
    SELECT
        'term' AS source, '' AS run, '' AS id, '' AS kind, '' AS attempt,
        '' AS new_attempt, toUInt32(0) AS launch, 0. AS grace,
        NULL AS deadline, '' AS reason, max(c.term) AS term,
        '' AS state, toDateTime64(0, 6, 'UTC') AS changed, changed AS since, '' AS nodes, '' AS master, '' AS resume
    FROM actions AS c
)
ORDER BY changed, id
