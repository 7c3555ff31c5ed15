"""What the embedded store promises beyond ClickHouse's protocol: what it refuses, and what it leaves behind."""

import gzip
import http.client
import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from backports import zstd

from pipeline.errors import StoreError
from pipeline.settings import Settings
from pipeline.store import Store

pytestmark = pytest.mark.skipif(bool(os.environ.get("SUREFOOT_TEST_CLICKHOUSE_URL")), reason="promised by the embedded store alone")
RawHttp = Any  # Raw of tests/pipeline/conftest.py


def test_a_broken_stream_never_ends_like_a_whole_one(shared_raw: RawHttp) -> None:
    with pytest.raises(http.client.IncompleteRead):
        shared_raw.post(b"SELECT throwIf(number = 8000000) FROM numbers(10000000) FORMAT RowBinary")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO watermarks (job, at, value) FORMAT CSV\n'j','2026-01-01 00:00:00','v'",
        "INSERT INTO watermarks VALUES ('j', '2026-01-01 00:00:00', 'v')",
        "INSERT INTO watermarks SELECT 'j', now64(6), 'v'",
        "/* a */ insert into `watermarks` (job) values ('j')",
    ],
)
def test_an_insert_without_a_token_into_a_deduplicating_table_is_refused_by_the_facade(raw: RawHttp, store: Store, statement: str) -> None:
    status, headers, body = raw.post(statement.encode())
    assert (status, headers["x-clickhouse-exception-code"]) == (400, "36")
    assert b"insert_deduplication_token" in body
    assert store.query("SELECT count() AS n FROM watermarks") == [{"n": 0}]


def test_a_table_without_deduplication_takes_inserts_without_a_token_until_it_is_altered(raw: RawHttp, store: Store) -> None:
    store.command("CREATE TABLE plain (x UInt8) ENGINE = MergeTree ORDER BY x")
    assert raw.post(b"INSERT INTO plain VALUES (1)")[0] == 200
    store.command("ALTER TABLE plain MODIFY SETTING non_replicated_deduplication_window = 10")
    assert raw.post(b"INSERT INTO plain VALUES (1)")[0] == 400
    assert store.query("SELECT x FROM plain") == [{"x": 1}]


def test_a_broken_or_unknown_coding_is_refused_and_the_connection_goes_on(raw: RawHttp) -> None:
    assert raw.post(b"no gzip at all", {"Content-Encoding": "gzip"}, query="INSERT INTO watermarks FORMAT CSV")[0] == 400
    assert raw.post(gzip.compress(b"SELECT 1" * 9)[:-4], {"Content-Encoding": "gzip"})[0] == 400
    assert raw.post(gzip.compress(b"SELECT 1") + gzip.compress(b" + 1"), {"Content-Encoding": "gzip"})[0] == 400, "half of it is not all"
    assert raw.post(b"SELECT 1", {"Content-Encoding": "rot13"})[0] == 400
    assert raw.post(b"SELECT 1")[::2] == (200, b"1\n")


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (b'name="query"\r\n\r\nSELECT {x:UInt8}', b"7"),
        (b'name="table"; filename="t"\r\n\r\n1', b"the field table is a file"),
        (b'name="nonsense"\r\n\r\n1', b"UNKNOWN_SETTING"),
        (b'nothing="query"\r\n\r\nSELECT 1', b"a field of the form has no name"),
        (b'name="query"\r\n\r\nSELECT \xff', b"the field query is not UTF-8"),
    ],
)
def test_a_query_may_come_as_a_form_and_files_may_not(raw: RawHttp, field: bytes, said: bytes) -> None:
    form = b"--b\r\nContent-Disposition: form-data; " + field + b"\r\n--b--\r\n"
    status, _, body = raw.post(form, {"Content-Type": "multipart/form-data; boundary=b"}, param_x="7")
    assert said in body and (status == 200) == (said == b"7")
    assert raw.post(b"--b\r\nhalf", {"Content-Type": "multipart/form-data; boundary=b"})[0] == 400
    assert raw.post(b"SELECT 1")[::2] == (200, b"1\n"), "the connection goes on"


@pytest.mark.parametrize("name", ["session_id", "max_server_memory_usage", "allow_experimental_codecs", "nonsense"])
def test_a_setting_that_is_not_on_the_list_is_refused_like_clickhouse_does(shared_raw: RawHttp, name: str) -> None:
    status, headers, body = shared_raw.post(b"SELECT 1", **{name: "1"})
    assert (status, headers["x-clickhouse-exception-code"]) == (404, "115")
    assert b"UNKNOWN_SETTING" in body
    assert name.encode() in body


def test_a_format_with_head_and_foot_is_one_document_however_many_blocks_it_has(shared_raw: RawHttp) -> None:
    for end in ("FORMAT JSON", "FORMAT JSON SETTINGS max_threads = 2"):
        document = json.loads(shared_raw.post(f"SELECT number FROM numbers(200000) {end}".encode())[2])
        assert document["rows"] == len(document["data"]) == 200_000


def test_settings_of_one_request_do_not_leak_into_the_next(shared_raw: RawHttp) -> None:
    asked = b"SELECT value FROM system.settings WHERE name = 'max_block_size'"
    before = shared_raw.post(asked)[2]
    assert shared_raw.post(asked, max_block_size="77")[2] == b"77\n"
    assert shared_raw.post(asked)[2] == before != b"77\n"


def test_readonly_is_kept_and_does_not_stick(raw: RawHttp, store: Store) -> None:
    store.command("CREATE TABLE plain (x UInt8) ENGINE = MergeTree ORDER BY x")
    refused = raw.post(b"INSERT INTO plain VALUES (1)", readonly="1")
    assert (refused[0], refused[1]["x-clickhouse-exception-code"]) == (400, "164")
    assert raw.post(b"SELECT 1", readonly="2")[::2] == (200, b"1\n")
    assert raw.post(b"INSERT INTO plain VALUES (1)")[0] == 200
    assert raw.post(b"DROP TABLE plain", method="GET")[1]["x-clickhouse-exception-code"] == "164"


@pytest.mark.parametrize("statement", [b"SET max_threads = 1", b"USE system", b"  -- x\n set max_threads = 1"])
def test_statements_that_need_a_session_are_refused(shared_raw: RawHttp, statement: bytes) -> None:
    assert shared_raw.post(statement)[0] == 501


def test_an_empty_or_overlong_statement_is_refused(shared_raw: RawHttp) -> None:
    assert shared_raw.post(b"")[1]["x-clickhouse-exception-code"] == "62"
    assert shared_raw.post(b"SELECT '" + b"x" * (5 << 20) + b"'")[0] == 413
    assert shared_raw.post(b"SELECT 1")[::2] == (200, b"1\n")


def test_a_body_that_decompresses_past_the_cap_is_refused(raw: RawHttp, store: Store) -> None:
    bomb = zstd.compress(b"\n" * (600 << 20))
    status, _, body = raw.post(
        bomb, {"Content-Encoding": "zstd"}, query="INSERT INTO watermarks FORMAT CSV", insert_deduplication_token="1"
    )
    assert (status, b"over" in body) == (413, True)
    assert store.query("SELECT count() AS n FROM watermarks") == [{"n": 0}]


def test_a_wrong_password_is_refused(raw_for: Callable[..., RawHttp], module_settings: Settings) -> None:
    stranger = raw_for(module_settings, "guess")
    status, headers, _ = stranger.post(b"SELECT 1")
    assert (status, headers["x-clickhouse-exception-code"]) == (403, "516")
    wrong = module_settings.model_copy(update={"store": module_settings.store.model_copy(update={"password": "guess"})})
    with pytest.raises(StoreError, match="password") as caught:
        Store.connect(wrong)
    assert (caught.value.code, caught.value.permanent) == (516, True)


def test_ping_needs_no_password(shared_raw: RawHttp) -> None:
    shared_raw.connection.request("GET", "/ping")
    answer = shared_raw.connection.getresponse()
    assert (answer.status, answer.read()) == (200, b"Ok.\n")


def test_a_client_that_leaves_in_the_middle_stops_its_query(shared_raw: RawHttp, module_store: Store) -> None:
    shared_raw.connection.request("POST", "/", b"SELECT number FROM numbers(100000000000) FORMAT RowBinary", shared_raw.headers)
    assert len(shared_raw.connection.getresponse().read(1 << 20)) == 1 << 20
    shared_raw.connection.close()
    running = "SELECT count() AS n FROM system.processes WHERE query LIKE {q:String} AND query NOT LIKE '%processes%'"
    deadline = time.monotonic() + 60
    while module_store.query(running, {"q": "SELECT number FROM numbers(100000000000)%"}) != [{"n": 0}]:
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.1)
