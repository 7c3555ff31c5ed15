WITH
    work AS (
        SELECT toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(previous_end) - phases_us AS us
        FROM (
            SELECT
                ended_at,
                step,
                arraySum(x -> toInt64(round(ifNull(x, 0) * 1e6)), [init, load_checkpoint, compile, data, checkpoint, eval]) AS phases_us,
                lagInFrame(ended_at) OVER earlier AS previous_end,
                lagInFrame(toNullable(step)) OVER earlier AS previous_step
            FROM steps
            WHERE run = {run:String} AND ended_at <= {until:DateTime64(6, 'UTC')}
            WINDOW earlier AS (PARTITION BY attempt, rank ORDER BY ended_at ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
        )
        WHERE previous_step IS NOT NULL AND step = previous_step + 1
    ),
    (SELECT quantileExactLow(0.5)(us) FROM work) AS middle,
    (SELECT middle + {deviations:UInt32} * quantileExactLow(0.5)(abs(us - middle)) FROM work) AS bound
SELECT
    count() AS steps,
    if(steps = 0, toInt64(0), toInt64(intDiv(sumIf(us, us <= bound), greatest(countIf(us <= bound), 1)))) AS mean_us,
    toInt64(ifNull(bound, 0)) AS limit_us
FROM work
