"""The contract between Store and whatever speaks ClickHouse's HTTP protocol: the embedded store always, and any server
that SUREFOOT_TEST_CLICKHOUSE_URL names. What the embedded store promises beyond that stands in test_store_facade.py."""

import gzip
import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import lz4.frame
import pyarrow as pa
import pytest
from backports import zstd
from clickhouse_connect.driver import Client
from clickhouse_connect.driver.exceptions import DatabaseError

from pipeline.clock import utcnow
from pipeline.errors import InputError, QueryTimeout, StoreError, StoreUnavailable, StreamFailure
from pipeline.records import Event, Live, Step
from pipeline.settings import Settings
from pipeline.store import Store

RawHttp = Any  # Raw of tests/pipeline/conftest.py
AT = datetime(2026, 3, 29, 1, 30, 0, 123456, tzinfo=UTC)
LONG = "SELECT count() FROM numbers(1000000000000) WHERE sipHash64(number) = 5"


def step(**given: object) -> Step:
    base = {"run": "r", "attempt": "r-1", "node": "n", "rank": 0, "step": 1, "started_at": AT, "ended_at": AT + timedelta(seconds=1)}
    return Step(**{**base, **given})  # type: ignore[arg-type]


# --- types -----------------------------------------------------------------------------------

VALUES = [
    ("UInt8", [0, 255]),
    ("UInt32", [0, 2**32 - 1]),
    ("UInt64", [0, 2**64 - 1]),
    ("Int32", [-(2**31), 2**31 - 1]),
    ("Int64", [-(2**63), 2**63 - 1]),
    ("Float64", [0.1, -1e300]),
    ("Bool", [True, False]),
    ("String", ["", "tab\t, 'quote', \\, \n, 训练"]),
    ("LowCardinality(String)", ["", "node-1"]),
    ("DateTime64(6, 'UTC')", [AT, AT + timedelta(microseconds=1)]),
    ("DateTime64(3, 'UTC')", [AT.replace(microsecond=123000), AT.replace(microsecond=0)]),
    ("Nullable(UInt8)", [None, 1]),
    ("Nullable(UInt32)", [None, 7]),
    ("Nullable(UInt64)", [None, 2**64 - 1]),
    ("Nullable(Int32)", [None, -9]),
    ("Nullable(Float64)", [None, 2.5]),
    ("Nullable(DateTime64(6, 'UTC'))", [None, AT]),
    ("Map(LowCardinality(String), String)", [{}, {"a": "1", "b": "it's"}]),
    ("Array(String)", [[], ["a", "b"]]),
]


@pytest.mark.parametrize(("kind", "values"), VALUES, ids=[k for k, _ in VALUES])
def test_values_come_back_as_they_were_stored(module_store: Store, kind: str, values: list[object]) -> None:
    module_store.command(f"CREATE OR REPLACE TABLE t (i UInt8, v {kind}) ENGINE = MergeTree ORDER BY i")
    module_store.insert_rows("t", [{"i": i, "v": v} for i, v in enumerate(values)], token="1")
    back = [row["v"] for row in module_store.query("SELECT v FROM t ORDER BY i")]
    assert back == values
    assert [type(v) for v in back] == [type(v) for v in values]


def test_nanosecond_times_are_kept_exactly(store: Store) -> None:
    at = time.time_ns() // 1000 * 1000 + 789
    store.insert_rows("logs", [{"Timestamp": at, "Body": "x"}], token="1")
    assert store.query("SELECT toUnixTimestamp64Nano(Timestamp) AS t FROM logs") == [{"t": at}]


def test_every_type_of_our_tables_is_among_the_types_tested(module_store: Store, module_settings: Settings) -> None:
    used = module_store.query("SELECT DISTINCT type FROM system.columns WHERE database = {d:String}", {"d": module_settings.store.database})
    assert {row["type"] for row in used} <= {k for k, _ in VALUES} | {"DateTime64(9, 'UTC')"}


def test_nan_and_infinity_become_null_and_do_not_poison_an_average(store: Store) -> None:
    losses = [None, 10.0, math.nan, math.inf]
    store.insert([step(step=i, loss=v) for i, v in enumerate(losses)], token="1")
    assert store.query("SELECT avg(loss) AS mean, count(loss) AS n, count() AS rows FROM steps") == [{"mean": 10.0, "n": 1, "rows": 4}]


def test_none_in_a_column_that_cannot_be_null_is_refused_naming_it(module_store: Store) -> None:
    with pytest.raises(InputError, match=r"steps\.rank: None"):
        module_store.insert([step(rank=None)], token="1")


def test_a_number_out_of_range_is_refused_and_not_wrapped(module_store: Store) -> None:
    with pytest.raises(InputError, match=r"steps\.rank"):
        module_store.insert([step(rank=2**32)], token="1")


def test_an_unknown_column_is_refused_naming_it(module_store: Store) -> None:
    with pytest.raises(InputError, match="'colour'"):
        module_store.insert_rows("steps", [{"colour": 1}], token="1")


@pytest.mark.parametrize("odd", ["plain", "tab\t, 'quote', \\, \n, \r\n, 训练", '--x--, "; name="y"'])
def test_parameters_too_long_for_an_address_arrive_whole(module_store: Store, odd: str) -> None:
    names = [f"{n:05d} {odd}" for n in range(2000)]  # the driver sends more than 4 kB of them as a form
    rows = module_store.query(
        "SELECT arrayStringConcat({names:Array(String)}, '|') AS all, {n:UInt32} AS n WHERE {n:UInt32} > 0", {"names": names, "n": 7}
    )
    assert rows == [{"all": "|".join(names), "n": 7}]
    numbers = [2**64 - 1 - n for n in range(5000)]
    table = module_store.query_arrow("SELECT arrayJoin({numbers:Array(UInt64)}) AS n", {"numbers": numbers})
    assert table.column("n").to_pylist() == numbers


# --- times -----------------------------------------------------------------------------------


def test_a_time_in_another_zone_is_the_same_instant(store: Store) -> None:
    shanghai = AT.astimezone(timezone(timedelta(hours=8)))
    store.insert([step(started_at=shanghai)], token="1")
    rows = store.query("SELECT started_at FROM steps WHERE started_at = {at:DateTime64(6)}", {"at": shanghai})
    assert [row["started_at"] for row in rows] == [AT]
    assert rows[0]["started_at"].utcoffset() == timedelta(0)


def test_naive_times_are_refused_both_ways(module_store: Store) -> None:
    with pytest.raises(InputError, match="naive"):
        module_store.insert([step(started_at=AT.replace(tzinfo=None))], token="1")
    with pytest.raises(ValueError, match="naive"):
        module_store.query("SELECT {at:DateTime64(6)}", {"at": AT.replace(tzinfo=None)})


def test_a_time_in_the_wrong_unit_is_refused(module_store: Store) -> None:
    with pytest.raises(InputError, match="wrong unit"):
        module_store.insert_rows("logs", [{"Timestamp": 1_790_000_000_123, "Body": "milliseconds"}], token="1")


# --- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "it's", "back\\slash", "tab\tnew\nline", "{x:String}", "); DROP TABLE steps --", "训练"])
def test_text_parameters_arrive_untouched(module_store: Store, text: str) -> None:
    assert module_store.query("SELECT {x:String} AS x, length({x:String}) AS n", {"x": text}) == [{"x": text, "n": len(text.encode())}]


def test_parameters_of_other_types_are_bound_by_the_server(module_store: Store) -> None:
    given = {"b": True, "i": -5, "f": 0.1, "l": ["a'b", "c"], "n": None, "at": AT, "big": 2**64 - 1}
    sql = "SELECT {b:Bool} b, {i:Int64} i, {f:Float64} f, "
    sql += "{l:Array(String)} l, {n:Nullable(String)} n, {at:DateTime64(6)} at, {big:UInt64} big"
    assert module_store.query(sql, given) == [given]


def test_a_parameter_without_a_place_in_the_sql_is_refused(module_store: Store) -> None:
    with pytest.raises(ValueError, match=r"\{x:Type\}"):
        module_store.query("SELECT 'a' LIKE 'a%'", {"x": "unused"})


def test_a_column_that_another_process_added_is_known_at_once(store: Store, store_settings: Settings) -> None:
    store.command("CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
    store.insert_rows("t", [{"a": 1}], token="1")
    other = Store.connect(store_settings)
    other.command("ALTER TABLE t ADD COLUMN b Nullable(UInt8)")
    other.close()
    store.insert_rows("t", [{"a": 2, "b": 3}], token="2")
    assert store.query("SELECT a, b FROM t ORDER BY a") == [{"a": 1, "b": None}, {"a": 2, "b": 3}]


# --- results ---------------------------------------------------------------------------------


def test_an_empty_result_is_empty(module_store: Store) -> None:
    assert module_store.query("SELECT * FROM steps") == []
    assert module_store.query_arrow("SELECT run, step FROM steps").schema.names == ["run", "step"]


def test_a_statement_may_end_in_a_semicolon_or_a_comment(module_store: Store) -> None:
    assert module_store.query("SELECT 1 AS x;\n") == module_store.query("-- why\nSELECT 1 AS x -- done") == [{"x": 1}]


def test_records_come_back_as_records(store: Store) -> None:
    now = utcnow()  # `live` keeps two days
    live = Live(run="r", attempt="r-1", node="n", rank=3, at=now, pid=4, step=5, since=now, phase="forward")
    event = Event(id="1", at=now, kind="rank_exited", layer="workload", severity="error", attrs={"signal": "9"})
    store.insert([live], token="1")
    store.insert([event], token="1")
    assert store.read(Live, "SELECT * FROM live", {}) == [live]
    assert store.read(Event, "SELECT * FROM events", {}) == [event]


def test_ten_million_numbers_stream_whole(client: Client) -> None:
    total = 0
    with client.query_column_block_stream("SELECT number FROM numbers(10000000)") as stream:
        for (block,) in stream:
            total += sum(block)
    assert total == 10_000_000 * 9_999_999 // 2


def test_a_large_arrow_result_is_whole(module_store: Store) -> None:
    got = module_store.query_arrow("SELECT number FROM numbers(1000000)")
    assert isinstance(got, pa.Table)
    assert (got.num_rows, got.column("number")[-1].as_py()) == (1_000_000, 999_999)


def test_an_error_before_the_stream_has_clickhouse_s_code(module_store: Store) -> None:
    with pytest.raises(StoreError) as caught:
        module_store.query("SELECT * FROM there_is_no_such_table")
    assert (caught.value.code, caught.value.permanent) == (60, True)


def test_an_error_in_the_middle_of_a_stream_raises(module_store: Store) -> None:
    with pytest.raises(StreamFailure) as caught:
        module_store.query("SELECT number, throwIf(number = 8000000, 'broken in the middle') FROM numbers(10000000)")
    assert caught.value.code == 395
    assert "broken in the middle" in str(caught.value)


def test_an_error_in_the_middle_raises_also_when_compressed(client: Client) -> None:
    with pytest.raises(DatabaseError, match="broken"):
        _ = client.query("SELECT number, throwIf(number = 8000000, 'broken') FROM numbers(10000000)").result_columns  # read lazily


# --- limits ----------------------------------------------------------------------------------


def running(store: Store, pattern: str) -> int:
    """How many queries like `pattern` run now."""
    sql = "SELECT count() AS n FROM system.processes WHERE query LIKE {q:String} AND query NOT LIKE '%processes%'"
    return int(store.query(sql, {"q": pattern})[0]["n"])


def until(true: Callable[[], bool]) -> bool:
    """Whether it comes true."""
    deadline = time.monotonic() + 30
    while not (found := true()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_a_time_out_stops_the_query_and_frees_the_engine(module_store: Store) -> None:
    began = time.monotonic()
    with pytest.raises(QueryTimeout):
        module_store.query(LONG, seconds=1)
    assert 0.9 < time.monotonic() - began < 10
    assert until(lambda: running(module_store, "SELECT count() FROM numbers(1000000000000)%") == 0)


def test_a_query_over_its_memory_is_refused_and_the_store_lives(module_store: Store) -> None:
    with pytest.raises(StoreError) as caught:
        module_store.query("SELECT length(groupArray(number)) FROM numbers(100000000000)")
    assert caught.value.code == 241
    assert module_store.query("SELECT 1 AS x") == [{"x": 1}]


def test_twelve_queries_run_at_a_time_over_one_store(module_store: Store) -> None:
    gate = threading.Barrier(12)

    def ask(i: int) -> list[dict[str, object]]:
        gate.wait(30)
        return module_store.query("SELECT {i:Int32} AS i, sum(number) AS s FROM numbers(1000000)", {"i": i})

    with ThreadPoolExecutor(12) as pool:
        got = list(pool.map(ask, range(12)))
    assert got == [[{"i": i, "s": 499_999_500_000}] for i in range(12)]


def test_a_short_query_does_not_wait_for_a_long_one(module_store: Store) -> None:
    with ThreadPoolExecutor(1) as pool:
        long = pool.submit(module_store.query, "SELECT sleep(3) AS s")
        assert until(lambda: running(module_store, "SELECT sleep(3)%") == 1), "this is a short query, and the long one runs"
        assert long.result(60) == [{"s": 0}]


# --- inserts ---------------------------------------------------------------------------------


def rows_of_steps(store: Store) -> int:
    return int(store.query("SELECT count() AS n FROM steps")[0]["n"])


def test_the_same_token_twice_is_stored_once(store: Store) -> None:
    for _ in range(2):
        store.insert([step(), step(step=2)], token="batch-1")
    assert rows_of_steps(store) == 2


def test_equal_rows_with_two_tokens_are_both_stored(store: Store) -> None:
    store.insert([step()], token="exporter-a")
    store.insert([step()], token="exporter-b")
    assert rows_of_steps(store) == 2


def test_equal_rows_in_one_batch_are_both_stored(store: Store) -> None:
    store.insert([step(), step()], token="1")
    assert rows_of_steps(store) == 2


def test_a_repeated_token_counts_also_after_other_inserts(store: Store) -> None:
    for token in ("a", "b", "c", "a", "b"):
        store.insert([step()], token=token)
    assert rows_of_steps(store) == 3


def test_an_insert_without_a_token_is_refused_before_it_is_sent(module_store: Store) -> None:
    with pytest.raises(ValueError, match="token"):
        module_store.insert([step()], token="")
    assert rows_of_steps(module_store) == 0


def test_nothing_to_insert_is_no_error(module_store: Store) -> None:
    module_store.insert([], token="1")
    module_store.insert_rows("steps", [], token="1")
    assert rows_of_steps(module_store) == 0


def test_a_batch_of_two_kinds_is_refused(module_store: Store) -> None:
    live = Live(run="r", attempt="r-1", node="n", rank=3, at=AT, pid=4)
    with pytest.raises(ValueError, match="one kind"):
        module_store.insert([step(), live], token="1")


def test_fifty_thousand_rows_go_in_at_once(store: Store) -> None:
    store.insert([step(step=i, rank=i % 8) for i in range(50_000)], token="1")
    assert store.query("SELECT count() AS n, sum(step) AS s FROM steps") == [{"n": 50_000, "s": 50_000 * 49_999 // 2}]


def test_the_driver_s_own_column_insert_works_too(client: Client, store: Store) -> None:
    client.insert("requests", [["i", AT, "k", "t", "a", "r"]], column_names=["intent", "at", "kind", "target", "actor", "reason"],
                  settings={"insert_deduplication_token": "1"})  # fmt: skip
    assert store.query("SELECT intent, at FROM requests") == [{"intent": "i", "at": AT}]


@pytest.mark.parametrize("how", ["url", "inline"])
def test_insert_select_and_values_keep_their_token(raw: RawHttp, store: Store, how: str) -> None:
    inline = " SETTINGS insert_deduplication_token = 'one'" if how == "inline" else ""
    url = {"insert_deduplication_token": "one"} if how == "url" else {}
    for _ in range(2):
        assert raw.post(f"INSERT INTO watermarks{inline} SELECT 'j', now64(6), 'v'".encode(), **url)[0] == 200
    assert store.query("SELECT count() AS n FROM watermarks") == [{"n": 1}]


# --- compression -----------------------------------------------------------------------------


@pytest.mark.parametrize(("coding", "compress"), [("gzip", gzip.compress), ("lz4", lz4.frame.compress), ("zstd", zstd.compress)])
def test_request_and_response_are_compressed(raw: RawHttp, coding: str, compress: object) -> None:
    lines = "\n".join(f'{{"job": "j{i}", "at": "2026-01-01 00:00:00", "value": "v"}}' for i in range(20_000))
    body = compress(lines.encode())  # type: ignore[operator]
    statement = "INSERT INTO watermarks FORMAT JSONEachRow"
    status, _, told = raw.post(body, {"Content-Encoding": coding}, query=statement, insert_deduplication_token=coding)
    assert (status, told) == (200, b"")
    status, headers, body = raw.post(
        b"SELECT job, toString(at) FROM watermarks FORMAT TSV", {"Accept-Encoding": coding}, enable_http_compression="1"
    )
    assert (status, headers["content-encoding"]) == (200, coding)
    plain = {"gzip": gzip.decompress, "lz4": lz4.frame.decompress, "zstd": zstd.decompress}[coding](body)
    assert len(plain.splitlines()) == 20_000
    assert len(body) < len(plain) / 3


def test_nothing_listening_is_unavailable_and_worth_a_retry(module_settings: Settings) -> None:
    gone = module_settings.store.model_copy(update={"port": 1, "url": ""})
    with pytest.raises(StoreUnavailable) as caught:
        Store.connect(module_settings.model_copy(update={"store": gone, "clickhouse_url": ""}))
    assert not caught.value.permanent
