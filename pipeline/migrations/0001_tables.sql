-- The hand-written tables. {…} are filled by pipeline/ddl.py: engine, cluster clause, database.
-- Columns and their order are those of pipeline/records.py; a test holds the two equal.

CREATE TABLE IF NOT EXISTS {database}.steps {on_cluster} (
    run LowCardinality(String),
    attempt LowCardinality(String),
    node LowCardinality(String),
    rank UInt32,
    step UInt64,
    started_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    ended_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    init Nullable(Float64),
    load_checkpoint Nullable(Float64),
    compile Nullable(Float64),
    data Nullable(Float64),
    forward Nullable(Float64),
    backward Nullable(Float64),
    optimizer Nullable(Float64),
    comm_wait Nullable(Float64),
    checkpoint Nullable(Float64),
    eval Nullable(Float64),
    rollout Nullable(Float64),
    reward Nullable(Float64),
    reference Nullable(Float64),
    weight_sync Nullable(Float64),
    loss Nullable(Float64),
    grad_norm Nullable(Float64),
    nonfinite LowCardinality(String),
    tokens Nullable(UInt64),
    samples Nullable(UInt64),
    flops Nullable(Float64)
) ENGINE = {merge_tree} PARTITION BY toYYYYMM(ended_at) ORDER BY (run, attempt, rank, step)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.live {on_cluster} (
    run LowCardinality(String),
    attempt LowCardinality(String),
    node LowCardinality(String),
    rank UInt32,
    at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    pid UInt32,
    step Nullable(UInt64),
    completed Nullable(UInt64),
    phase LowCardinality(String),
    since Nullable(DateTime64(6, 'UTC')),
    collective LowCardinality(String),
    process_state LowCardinality(String),
    cpu_seconds Nullable(Float64),
    overrun UInt64
) ENGINE = {merge_tree} PARTITION BY toDate(at) ORDER BY (run, attempt, rank, at)
TTL toDateTime(at) + INTERVAL 2 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.events {on_cluster} (
    id String,
    at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    kind LowCardinality(String),
    layer LowCardinality(String),
    severity LowCardinality(String),
    node LowCardinality(String),
    device LowCardinality(String),
    run LowCardinality(String),
    attempt LowCardinality(String),
    rank Nullable(UInt32),
    code LowCardinality(String),
    message String,
    duration Nullable(Float64),
    count UInt32,
    attrs Map(LowCardinality(String), String)
) ENGINE = {merge_tree} PARTITION BY toYYYYMM(at) ORDER BY (kind, run, at)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.beats {on_cluster} (
    component LowCardinality(String),
    at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    node LowCardinality(String),
    run LowCardinality(String),
    attempt LowCardinality(String),
    state LowCardinality(String),
    launch UInt32,
    ranks String,
    nodes LowCardinality(String),
    address String,
    waited Float64,
    resume String
) ENGINE = {merge_tree} PARTITION BY toDate(at) ORDER BY (component, run, node, at)
TTL toDateTime(at) + INTERVAL 2 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.attempt_facts {on_cluster} (
    run String,
    attempt String,
    node LowCardinality(String),
    at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    facts Map(LowCardinality(String), String) CODEC(ZSTD(3))
) ENGINE = {merge_tree} PARTITION BY toYYYYMM(at) ORDER BY (run, attempt, node, at)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.changes {on_cluster} (
    id String,
    at DateTime64(6, 'UTC'),
    kind LowCardinality(String),
    what String,
    actor LowCardinality(String),
    nodes String
) ENGINE = {merge_tree} ORDER BY (at, id)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.logs {on_cluster} (
    Timestamp DateTime64(9, 'UTC') CODEC(Delta, ZSTD),
    TraceId String,
    SpanId String,
    TraceFlags UInt8,
    SeverityText LowCardinality(String),
    SeverityNumber UInt8,
    ServiceName LowCardinality(String),
    Body String CODEC(ZSTD(3)),
    ResourceAttributes Map(LowCardinality(String), String),
    ScopeName LowCardinality(String),
    LogAttributes Map(LowCardinality(String), String),
    EventName LowCardinality(String)
) ENGINE = {merge_tree} PARTITION BY toDate(Timestamp) ORDER BY (ServiceName, toDateTime(Timestamp), Timestamp)
TTL toDateTime(Timestamp) + INTERVAL 14 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.samples {on_cluster} (
    metric LowCardinality(String),
    series UInt64,
    ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD),
    value Nullable(Float64) CODEC(ZSTD(3)),
    since Nullable(DateTime64(6, 'UTC')) CODEC(ZSTD)
) ENGINE = {merge_tree} PARTITION BY toDate(ts) ORDER BY (metric, series, ts)
TTL toDateTime(ts) + INTERVAL 14 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.series {on_cluster} (
    series UInt64,
    metric LowCardinality(String),
    unit LowCardinality(String),
    kind LowCardinality(String),
    labels Map(LowCardinality(String), String),
    seen_at DateTime64(6, 'UTC')
) ENGINE = {replacing_merge_tree} ORDER BY (metric, series)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.devices {on_cluster} (
    device_id UInt64,
    family LowCardinality(String),
    node LowCardinality(String),
    name String,
    attrs Map(LowCardinality(String), String),
    seen_at DateTime64(6, 'UTC')
) ENGINE = {replacing_merge_tree} ORDER BY (family, device_id)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.runs {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    run String,
    node LowCardinality(String),
    command String,
    ranks UInt32,
    checkpoints String,
    exit_code Nullable(Int32)
) ENGINE = {merge_tree} ORDER BY (run, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.attempts {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    run String,
    attempt String,
    launch UInt32,
    node LowCardinality(String),
    ranks UInt32,
    resume_from String,
    exit_code Nullable(Int32),
    action String,
    nodes String,
    master String
) ENGINE = {merge_tree} ORDER BY (run, attempt, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.findings {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    finding String,
    key String,
    detector LowCardinality(String),
    fault LowCardinality(String),
    layer LowCardinality(String),
    severity LowCardinality(String),
    run String,
    attempt String,
    node LowCardinality(String),
    device String,
    rank Nullable(UInt32),
    onset Nullable(DateTime64(6, 'UTC')),
    evidence String,
    confidence Float64,
    incident String
) ENGINE = {merge_tree} ORDER BY (key, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.incidents {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    incident String,
    key String,
    fault LowCardinality(String),
    layer LowCardinality(String),
    severity LowCardinality(String),
    title String,
    run String,
    attempt String,
    node LowCardinality(String),
    device String,
    rank Nullable(UInt32),
    confidence Float64,
    onset Nullable(DateTime64(6, 'UTC')),
    detected_at Nullable(DateTime64(6, 'UTC')),
    located_at Nullable(DateTime64(6, 'UTC')),
    acted_at Nullable(DateTime64(6, 'UTC')),
    recovered_at Nullable(DateTime64(6, 'UTC')),
    caught_up_at Nullable(DateTime64(6, 'UTC')),
    resolved_at Nullable(DateTime64(6, 'UTC')),
    acknowledged_by String,
    next_attempt String,
    merged_into String
) ENGINE = {merge_tree} ORDER BY (incident, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.actions {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    action String,
    key String,
    kind LowCardinality(String),
    mode LowCardinality(String),
    term UInt64,
    incident String,
    run String,
    attempt String,
    new_attempt String,
    launch UInt32,
    node LowCardinality(String),
    grace Float64,
    deadline Nullable(DateTime64(6, 'UTC'))
) ENGINE = {merge_tree} ORDER BY (run, action, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.notifications {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    notification String,
    incident String,
    receiver LowCardinality(String),
    event LowCardinality(String),
    dedup_key String,
    tries UInt32
) ENGINE = {merge_tree} ORDER BY (incident, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.silences {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    hold String,
    matcher String,
    owner LowCardinality(String),
    starts_at DateTime64(6, 'UTC'),
    ends_at Nullable(DateTime64(6, 'UTC'))
) ENGINE = {merge_tree} ORDER BY (hold, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.maintenance {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    hold String,
    matcher String,
    owner LowCardinality(String),
    starts_at DateTime64(6, 'UTC'),
    ends_at Nullable(DateTime64(6, 'UTC'))
) ENGINE = {merge_tree} ORDER BY (hold, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.pauses {on_cluster} (
    old_state LowCardinality(String),
    new_state LowCardinality(String),
    reason String,
    actor LowCardinality(String),
    at DateTime64(6, 'UTC'),
    hold String,
    matcher String,
    owner LowCardinality(String),
    starts_at DateTime64(6, 'UTC'),
    ends_at Nullable(DateTime64(6, 'UTC'))
) ENGINE = {merge_tree} ORDER BY (hold, at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.requests {on_cluster} (
    intent String,
    at DateTime64(6, 'UTC'),
    kind LowCardinality(String),
    target String,
    actor String,
    reason String,
    starts_at Nullable(DateTime64(6, 'UTC')),
    ends_at Nullable(DateTime64(6, 'UTC'))
) ENGINE = {merge_tree} ORDER BY (at, intent)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.ledger {on_cluster} (
    run String,
    attempt String,
    part UInt32,
    generation UInt64,
    rank UInt32,
    started_at DateTime64(6, 'UTC'),
    ended_at DateTime64(6, 'UTC'),
    category LowCardinality(String),
    incident String
) ENGINE = {merge_tree} ORDER BY (run, attempt, part, generation, rank, started_at)
SETTINGS {dedup};

CREATE TABLE IF NOT EXISTS {database}.slo_results {on_cluster} (
    figure LowCardinality(String),
    window_seconds UInt32,
    at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    started_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    ended_at DateTime64(6, 'UTC') CODEC(Delta, ZSTD),
    value Nullable(Float64),
    median Nullable(Float64),
    p90 Nullable(Float64),
    catch_up Nullable(Float64),
    count UInt64,
    open UInt32
) ENGINE = {merge_tree} PARTITION BY toYYYYMM(at) ORDER BY (figure, window_seconds, at)
TTL toDateTime(at) + INTERVAL 400 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};

CREATE TABLE IF NOT EXISTS {database}.watermarks {on_cluster} (
    job String,
    at DateTime64(6, 'UTC'),
    value String
) ENGINE = {merge_tree} ORDER BY (job, at)
SETTINGS {dedup};
