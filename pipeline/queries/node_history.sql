-- Shares are sums over sums of what counters grew by; a counter that began anew and a gap say nothing.
SELECT
    toStartOfInterval(ts, toIntervalSecond({width:UInt32}), 'UTC') AS slot,
    sum(busy) / nullIf(sumIf(seconds * cpu_count, isNotNull(busy)), 0) AS cpu_busy,
    sum(waiting) / nullIf(sumIf(seconds * cpu_count, isNotNull(waiting)), 0) AS cpu_iowait,
    1 - sum(memory_available) / nullIf(sumIf(memory_total, isNotNull(memory_available)), 0) AS memory_used,
    1 - sum(shm_free) / nullIf(sumIf(shm_total, isNotNull(shm_free)), 0) AS shm_used,
    sum(cpu) / nullIf(sumIf(seconds, isNotNull(cpu)), 0) AS cpu_pressure,
    sum(memory) / nullIf(sumIf(seconds, isNotNull(memory)), 0) AS memory_pressure,
    sum(io) / nullIf(sumIf(seconds, isNotNull(io)), 0) AS io_pressure
FROM (
    SELECT
        ts,
        cpu_count,
        memory_total,
        memory_available,
        shm_total,
        shm_free,
        (toUnixTimestamp64Micro(ts) - lagInFrame(toNullable(toUnixTimestamp64Micro(ts))) OVER earlier) / 1e6 AS apart,
        if(apart <= {gap:Float64}, apart, NULL) AS seconds,
        if(isNull(seconds) OR cpu_busy < lagInFrame(cpu_busy) OVER earlier, NULL, cpu_busy - lagInFrame(cpu_busy) OVER earlier) AS busy,
        if(isNull(seconds) OR cpu_iowait < lagInFrame(cpu_iowait) OVER earlier, NULL, cpu_iowait - lagInFrame(cpu_iowait) OVER earlier)
            AS waiting,
        if(isNull(seconds) OR pressure_cpu_some < lagInFrame(pressure_cpu_some) OVER earlier, NULL,
            pressure_cpu_some - lagInFrame(pressure_cpu_some) OVER earlier) AS cpu,
        if(isNull(seconds) OR pressure_memory_some < lagInFrame(pressure_memory_some) OVER earlier, NULL,
            pressure_memory_some - lagInFrame(pressure_memory_some) OVER earlier) AS memory,
        if(isNull(seconds) OR pressure_io_some < lagInFrame(pressure_io_some) OVER earlier, NULL,
            pressure_io_some - lagInFrame(pressure_io_some) OVER earlier) AS io
    FROM host
    WHERE device_id = {device:UInt64} AND ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
    WINDOW earlier AS (PARTITION BY device_id ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
)
GROUP BY slot
ORDER BY slot
