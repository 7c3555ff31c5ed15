-- Counters as a share of the time between their first and their last value; a counter that began anew in between says nothing.
WITH
    (toUnixTimestamp64Micro(maxIf(ts, isNotNull(host.cpu_busy))) - toUnixTimestamp64Micro(minIf(ts, isNotNull(host.cpu_busy)))) / 1e6 AS cpu_s,
    (toUnixTimestamp64Micro(maxIf(ts, isNotNull(pressure_cpu_some))) - toUnixTimestamp64Micro(minIf(ts, isNotNull(pressure_cpu_some)))) / 1e6
        AS pressure_s,
    argMax(host.cpu_busy, ts) - argMin(host.cpu_busy, ts) AS busy,
    argMax(pressure_cpu_some, ts) - argMin(pressure_cpu_some, ts) AS cpu,
    argMax(pressure_memory_some, ts) - argMin(pressure_memory_some, ts) AS memory,
    argMax(pressure_io_some, ts) - argMin(pressure_io_some, ts) AS io
SELECT
    node,
    max(ts) AS at,
    argMax(host.cpu_count, ts) AS cpus,
    argMax(host.memory_total, ts) AS memory_total,
    argMax(host.memory_available, ts) AS memory_available,
    if(cpu_s > 0 AND busy >= 0, busy / cpu_s / cpus, NULL) AS cpu_busy,
    if(pressure_s > 0 AND cpu >= 0, cpu / pressure_s, NULL) AS cpu_pressure,
    if(pressure_s > 0 AND memory >= 0, memory / pressure_s, NULL) AS memory_pressure,
    if(pressure_s > 0 AND io >= 0, io / pressure_s, NULL) AS io_pressure
FROM host
WHERE ts > {since:DateTime64(6, 'UTC')} AND ts <= {until:DateTime64(6, 'UTC')}
GROUP BY node
ORDER BY node
