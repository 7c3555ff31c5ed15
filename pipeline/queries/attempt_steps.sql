SELECT * FROM (
    SELECT rank, step, started_at, ended_at, init, load_checkpoint, compile, data, checkpoint, eval
    FROM steps
    WHERE run = {run:String} AND attempt = {attempt:String}
        AND ended_at > {start:DateTime64(6, 'UTC')} AND started_at < {end:DateTime64(6, 'UTC')}
    UNION ALL
    SELECT rank, step, started_at, ended_at, init, load_checkpoint, compile, data, checkpoint, eval
    FROM steps
    WHERE run = {run:String} AND attempt = {attempt:String} AND ended_at <= {start:DateTime64(6, 'UTC')}
    ORDER BY ended_at DESC LIMIT 1 BY rank
    UNION ALL
    SELECT rank, step, started_at, ended_at, init, load_checkpoint, compile, data, checkpoint, eval
    FROM steps
    WHERE run = {run:String} AND attempt = {attempt:String} AND started_at >= {end:DateTime64(6, 'UTC')}
    ORDER BY started_at LIMIT 1 BY rank
)
ORDER BY rank, started_at, ended_at
