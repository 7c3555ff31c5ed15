"""`surefoot change`, as a person or a deploy pipeline runs it: through a real ingest into a real store."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
import requests

from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.queries.changes_between import changes_between
from pipeline.records import Change
from pipeline.store import Store
from surefoot.commands.times import moment, span
from surefoot.drill.stack import free_ports

NOW = datetime(2026, 11, 30, 14, 5, tzinfo=UTC)
Say = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def say(store_environment: dict[str, str]) -> Say:
    """Runs `surefoot …` against this test's store; nothing listens where ingest should be."""
    environment = store_environment | {"SUREFOOT_INGEST__PORT": str(free_ports(1)[0]), "SUREFOOT_INGEST__TOKEN": "right"}

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "surefoot", *words]
        return subprocess.run(command, env=environment | more, capture_output=True, text=True, timeout=60, check=False)

    run.environment = environment  # type: ignore[attr-defined]
    return run


@pytest.fixture
def with_ingest(say: Say) -> Iterator[Say]:
    """`say`, with a real ingest."""
    environment = say.environment  # type: ignore[attr-defined]
    process = subprocess.Popen([sys.executable, "-P", "-m", "surefoot", "ingest"], env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        try:
            requests.get(f"http://127.0.0.1:{environment['SUREFOOT_INGEST__PORT']}/healthz", timeout=30)
            break
        except requests.ConnectionError:
            time.sleep(0.1)
    yield say
    process.terminate()
    process.wait(20)


def kept(store: Store, count: int) -> list[Change]:
    deadline = time.monotonic() + 60
    while len(found := changes_between(store, utcnow() - timedelta(days=30), utcnow())) < count:
        assert time.monotonic() < deadline, found
        time.sleep(0.1)
    return found


def test_a_change_is_kept_and_listed(with_ingest: Say, store: Store) -> None:
    done = with_ingest("change", "add", "--kind", "driver", "--what", "550 ->  570", "--node", "GPU-07", "--node", "a,b", "--actor", "ci")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("recorded: driver: 550 -> 570 on a, b, gpu-07, by ci at ")
    with_ingest("change", "add", "--kind", "deploy", "--what", "image 1.8.2", "--at", "3h")
    newest, older = kept(store, 2)
    assert (newest.kind, newest.what, newest.nodes, newest.actor) == ("driver", "550 -> 570", "a,b,gpu-07", "ci")
    assert abs((utcnow() - newest.at).total_seconds()) < 60
    assert abs((utcnow() - older.at).total_seconds() - 3 * 3600) < 60 and older.actor not in ("", "ci")
    listed = with_ingest("change", "list", "--last", "1h").stdout.splitlines()
    assert len(listed) == 1 and listed[0].endswith(" UTC  driver: 550 -> 570 on a, b, gpu-07, by ci")
    told = [json.loads(line) for line in with_ingest("change", "list", "--json").stdout.splitlines()]
    assert [(c["kind"], c["nodes"]) for c in told] == [("driver", ["a", "b", "gpu-07"]), ("deploy", [])]


def test_a_wrong_token_is_refused_with_what_to_do(with_ingest: Say, store: Store) -> None:
    done = with_ingest("change", "add", "--kind", "code", "--what", "x", SUREFOOT_INGEST__TOKEN="wrong")
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "401" in done.stderr and "set SUREFOOT_INGEST__TOKEN" in done.stderr
    assert changes_between(store, utcnow() - timedelta(days=1), utcnow()) == []


def test_where_nobody_listens_nothing_is_recorded_and_it_is_said(say: Say) -> None:
    done = say("change", "add", "--kind", "code", "--what", "x")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert "nothing was recorded: ingest at http://127.0.0.1:" in done.stderr and "SUREFOOT_INGEST__URL" in done.stderr


def test_an_ingest_that_comes_back_in_a_moment_gets_it_once(say: Say) -> None:
    """The first answer is 503; the second try carries the same batch id, by which ingest keeps it once."""
    seen: list[str | None] = []

    class Busy(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append(self.headers["X-Surefoot-Batch"])
            self.send_response(503 if len(seen) == 1 else 200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = HTTPServer(("127.0.0.1", 0), Busy)
    thread = Thread(target=server.serve_forever)
    thread.start()
    done = say("change", "add", "--kind", "code", "--what", "x", SUREFOOT_INGEST__PORT=str(server.server_address[1]))
    server.shutdown()
    thread.join()
    server.server_close()
    assert done.returncode == 0, done.stderr
    assert len(seen) == 2 and len(set(seen)) == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--kind", "code", "--what", "  "], "--what must be 1 to 500 characters"),
        (["--kind", "code", "--what", "x", "--at", "2099-01-01"], "lies ahead"),
        (["--kind", "code", "--what", "x", "--at", "yesterday"], "is no time"),
    ],
)
def test_what_makes_no_sense_is_one_line(say: Say, words: list[str], why: str) -> None:
    done = say("change", "add", *words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and why in done.stderr


def test_an_empty_list_says_how_to_record_one(say: Say) -> None:
    assert (
        say("change", "list").stdout == "no change is recorded in the last 7d; record one: surefoot change add --kind deploy --what ...\n"
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2026-11-30T10:00", datetime(2026, 11, 30, 10, tzinfo=UTC)),
        ("2026-11-30T10:00:00+08:00", datetime(2026, 11, 30, 2, tzinfo=UTC)),
        ("2026-11-30T10:00:00Z", datetime(2026, 11, 30, 10, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("9:30", datetime(2026, 11, 30, 9, 30, tzinfo=UTC)),
        ("13:05:07", datetime(2026, 11, 30, 13, 5, 7, tzinfo=UTC)),
        ("90m", datetime(2026, 11, 30, 12, 35, tzinfo=UTC)),
        ("1.5h", datetime(2026, 11, 30, 12, 35, tzinfo=UTC)),
    ],
)
def test_times_as_people_write_them(text: str, wanted: datetime) -> None:
    assert moment(text, NOW) == wanted


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01", "0001-01-01", "25:00", "99999999999999999999d", "-1h", "1x"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        moment(text, NOW)


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("24h", 86400), ("7d", 604800), ("2w", 1209600), ("0.5h", 1800)])
def test_lengths_of_time(text: str, seconds: float) -> None:
    assert span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0s", "", "7", "days", "11000d", "999999999999w"])
def test_what_is_no_length_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="30m, 24h or 7d"):
        span(text)
