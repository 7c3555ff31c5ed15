SELECT
    rank,
    min(seen_at) AS first_at,
    max(seen_at) AS last_at,
    arraySort(groupArrayIf((previous_at, seen_at), numbered > 1 AND seen_at > previous_at + toIntervalMicrosecond(toInt64({gap:Float64} * 1e6)))) AS silences
FROM (
    SELECT
        rank,
        at AS seen_at,
        lagInFrame(at) OVER earlier AS previous_at,
        row_number() OVER (PARTITION BY rank ORDER BY at) AS numbered
    FROM live
    WHERE run = {run:String} AND attempt = {attempt:String} AND process_state != 'X'
    WINDOW earlier AS (PARTITION BY rank ORDER BY at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
)
GROUP BY rank
ORDER BY rank
