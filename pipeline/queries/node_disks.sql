-- Of each disk what it moved over the time in which it was watched, then the sum over the disks.
SELECT slot, sum(read_rate) AS read, sum(written_rate) AS written
FROM (
    SELECT
        slot,
        device_id,
        sum(read_bytes) / nullIf(sumIf(seconds, isNotNull(read_bytes)), 0) AS read_rate,
        sum(written_bytes) / nullIf(sumIf(seconds, isNotNull(written_bytes)), 0) AS written_rate
    FROM (
        SELECT
            device_id,
            toStartOfInterval(ts, toIntervalSecond({width:UInt32}), 'UTC') AS slot,
            (toUnixTimestamp64Micro(ts) - lagInFrame(toNullable(toUnixTimestamp64Micro(ts))) OVER earlier) / 1e6 AS apart,
            if(apart <= {gap:Float64}, apart, NULL) AS seconds,
            if(isNull(seconds) OR disk.read < lagInFrame(disk.read) OVER earlier, NULL, disk.read - lagInFrame(disk.read) OVER earlier)
                AS read_bytes,
            if(isNull(seconds) OR disk.written < lagInFrame(disk.written) OVER earlier, NULL,
                disk.written - lagInFrame(disk.written) OVER earlier) AS written_bytes
        FROM disk
        WHERE device_id IN (SELECT device_id FROM devices WHERE family = 'disk' AND node = {node:String})
            AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
        WINDOW earlier AS (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
    )
    GROUP BY slot, device_id
)
GROUP BY slot
ORDER BY slot
