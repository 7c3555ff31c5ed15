WITH (
    SELECT (min(step), greatest(toUInt64(1), toUInt64(ceil((max(step) - min(step) + 1) / {bins:UInt32})))) FROM steps
    WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
) AS cut
SELECT
    cut.1 + intDiv(steps.step - cut.1, cut.2) * cut.2 AS step,
    avg((toUnixTimestamp64Micro(ended_at) - toUnixTimestamp64Micro(started_at)) / 1e6) AS seconds,
    sum(ifNull(steps.init, 0)) / count() AS init,
    sum(ifNull(steps.load_checkpoint, 0)) / count() AS load_checkpoint,
    sum(ifNull(steps.compile, 0)) / count() AS compile,
    sum(ifNull(steps.data, 0)) / count() AS data,
    sum(ifNull(steps.forward, 0)) / count() AS forward,
    sum(ifNull(steps.backward, 0)) / count() AS backward,
    sum(ifNull(steps.optimizer, 0)) / count() AS optimizer,
    sum(ifNull(steps.comm_wait, 0)) / count() AS comm_wait,
    sum(ifNull(steps.checkpoint, 0)) / count() AS checkpoint,
    sum(ifNull(steps.eval, 0)) / count() AS eval,
    sum(ifNull(steps.rollout, 0)) / count() AS rollout,
    sum(ifNull(steps.reward, 0)) / count() AS reward,
    sum(ifNull(steps.reference, 0)) / count() AS reference,
    sum(ifNull(steps.weight_sync, 0)) / count() AS weight_sync
FROM steps
WHERE run = {run:String} AND ended_at BETWEEN {since:DateTime64(6, 'UTC')} AND {until:DateTime64(6, 'UTC')}
GROUP BY step
ORDER BY step
