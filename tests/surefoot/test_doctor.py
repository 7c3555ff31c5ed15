"""`surefoot doctor`, with and without `--coverage`, as a person and as a script calls it."""

import errno
import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response
from werkzeug.serving import WSGIRequestHandler

from exporters.passes import HUNG, Outcome
from exporters.sources.storage.mounts import Probe
from exporters.sources.storage.probes import Standing
from pipeline.catalog.faults import FAULTS
from pipeline.settings import ReceiverSettings, Settings
from surefoot.checkup import (
    GIB,
    Answered,
    Check,
    Room,
    State,
    checkup,
    of_clock,
    of_collector,
    of_ingest,
    of_probe_paths,
    of_receivers,
    of_room,
    of_token,
    well,
)
from surefoot.cli import cli


def called(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *words], env={f"SUREFOOT_{k}": v for k, v in environment.items()})


def test_every_fault_stands_in_the_list_with_what_finds_it_or_what_it_waits_for() -> None:
    done = called("--coverage")
    assert done.exit_code == 0
    for fault in FAULTS:
        (line,) = [line for line in done.output.splitlines() if line.split()[:1] == [fault.name]]
        assert ("not covered: waits for" in line) is bool(fault.waits_for)
    rows = [line.strip() for line in done.output.splitlines()]
    assert any(row.split(None, 1) == ["rank_crash", "rank_exit"] for row in rows)
    assert "fault_rule: mount.inodes_free / mount.inodes <= 0.02 and mount.read_only <= 0" in rows
    assert any(row.startswith("gpu_slow ") and row.endswith("not covered: waits for the slowdown detectors") for row in rows)
    assert any(row.startswith("hung_task ") and row.endswith("fault_rule: event hung_task") for row in rows)
    assert rows[-1] == f"{sum(not fault.waits_for for fault in FAULTS)} of {len(FAULTS)} faults are covered"


def test_what_finds_a_fault_is_listed_once() -> None:
    for fault in json.loads(called("--coverage", "--json").output)["faults"]:
        assert len(set(fault["covered_by"])) == len(fault["covered_by"]), fault["name"]


def test_the_same_as_json_is_one_object_on_one_line() -> None:
    done = called("--coverage", "--json")
    assert done.exit_code == 0 and done.output.count("\n") == 1
    rows = {row["name"]: row for row in json.loads(done.output)["faults"]}
    assert rows.keys() == {f.name for f in FAULTS}
    assert rows["restart_loop"]["covered_by"] == ["policy: the limits on restarts"]
    assert (rows["switch_fault"]["covered_by"], rows["switch_fault"]["waits_for"]) == ([], "the comparison of a switch's ports")
    assert rows["rank_crash"]["first_action"] == "restart_run"


# --- what this machine needs -------------------------------------------------------------------

T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)
TOKEN = "t" * 32


def ingest(server: HTTPServer, *, token: str = TOKEN) -> None:
    """An ingest that says what the real one does."""

    def logs(request: Request) -> Response:
        return Response("", 415 if request.headers.get("Authorization") == f"Bearer {token}" else 401)

    server.expect_request("/healthz", method="GET").respond_with_json({"status": "ok", "store_up": True})
    server.expect_request("/v1/logs", method="POST").respond_with_handler(logs)


def checks(done: Result) -> dict[str, tuple[str, str]]:
    return {c["name"]: (c["state"], c["said"]) for c in json.loads(done.output)["checks"]}


def here(tmp_path: Path, server: HTTPServer, **more: str) -> dict[str, str]:
    return {"STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "INGEST__URL": server.url_for("/")} | more


def test_where_all_is_there_it_says_so_line_by_line_and_ends_with_0(tmp_path: Path, httpserver: HTTPServer) -> None:
    ingest(httpserver)
    done = called(**here(tmp_path, httpserver, INGEST__TOKEN=TOKEN, NODE="gpu-01"))
    lines = done.output.splitlines()
    assert (done.exit_code, lines[0].split(), lines[-1]) == (0, ["CHECK", "STATE", "WHAT"], "all is well")
    told = checks(called("--json", **here(tmp_path, httpserver, INGEST__TOKEN=TOKEN, NODE="gpu-01")))
    assert told["settings"] == ("ok", "no file, so the environment and defaults; cluster local, node gpu-01")
    assert told["ingest"] == ("ok", httpserver.url_for("/").rstrip("/"))
    assert told["token"] == ("ok", "ingest takes ours")
    assert told["clock"] == ("ok", "within 3 s of ingest's")
    assert told["sees host"][0] == "ok" and told["sees mount"][0] == "ok"
    assert not (tmp_path / "state").exists() and not (tmp_path / "rings").exists(), "it only looks"


def test_what_is_not_there_is_told_with_what_to_do_and_ends_with_1(
    tmp_path: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(httpserver, token="another")
    monkeypatch.setattr(WSGIRequestHandler, "date_time_string", lambda _: formatdate(time.time() - 60, usegmt=True))
    done = called("--json", **here(tmp_path, httpserver, INGEST__TOKEN=TOKEN, TOPOLOGY=str(tmp_path / "none.yaml")))
    assert (done.exit_code, json.loads(done.output)["well"]) == (1, False)
    told = checks(done)
    assert told["token"] == (
        "not",
        f"ingest refuses ours: set ingest.token to ingest's, or copy the file ingest.token of its state folder to {tmp_path}/state",
    )
    assert told["clock"][0] == "not" and told["clock"][1].endswith(
        "s ahead of ingest's: let both keep time by NTP (chronyc tracking, timedatectl)"
    )
    assert told["topology"][0] == "not" and "none.yaml" in told["topology"][1]
    assert len([c for c in told.values() if c[0] == "not"]) == 3


def test_an_ingest_that_is_not_there_is_one_missing_thing_and_a_missing_token_another(tmp_path: Path, httpserver: HTTPServer) -> None:
    done = called("--json", **here(tmp_path, httpserver, INGEST__URL="http://127.0.0.1:9"))
    told = checks(done)
    assert told["ingest"] == (
        "not",
        "http://127.0.0.1:9 does not answer (Connection refused): start it (surefoot up), or set ingest.url to where it is",
    )
    assert told["token"][0] == "not" and told["token"][1].startswith("there is none here: set ingest.token")
    assert told["clock"] == ("note", "not compared: ingest did not tell its time")
    assert done.exit_code == 1


def test_a_machine_on_which_nothing_was_set_up_yet_is_not_ill_and_is_told_how_to_begin(tmp_path: Path, httpserver: HTTPServer) -> None:
    done = called("--json", **{"STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "INGEST__PORT": "9"})
    told = checks(done)
    assert told["ingest"] == ("note", "Surefoot was not started here yet: start it (surefoot up), or set ingest.url to where it is")
    assert told["token"] == ("note", "there is none yet: surefoot up makes one here, a node of a cluster gets ingest's")
    assert done.exit_code == 0
    begun = {"STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "INGEST__PORT": "9", "INGEST__TOKEN": TOKEN}
    assert called(**begun).exit_code == 1, "what is set up and not there is missed"


def test_a_node_without_an_agent_is_told_as_its_loss_would_not_be_noticed(tmp_path: Path, httpserver: HTTPServer) -> None:
    ingest(httpserver)
    none = checks(called("--json", **here(tmp_path, httpserver, AGENT__PORT="9")))
    said = "none answers at http://127.0.0.1:9, so a loss of this node would not be noticed: start one where runs are (surefoot agent)"
    assert none["agent"] == ("note", said)
    one = checks(called("--json", **here(tmp_path, httpserver, AGENT__PORT=str(httpserver.port), AGENT__HOST="0.0.0.0")))
    assert one["agent"] == ("ok", f"http://127.0.0.1:{httpserver.port}")


def test_the_settings_file_is_named(tmp_path: Path, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("cluster: west\n")
    monkeypatch.setenv("SUREFOOT_CONFIG", str(file))
    assert checks(called("--json", **here(tmp_path, httpserver)))["settings"][1].startswith(f"{file}; cluster west")


@pytest.mark.parametrize(
    ("health", "state"),
    [
        (Answered(200, "ok"), "ok"),
        (Answered(200, "the store is away, or nothing was stored yet"), "not"),
        (Answered(404, "something else"), "not"),
        (Answered(None, "Connection refused"), "not"),
    ],
)
def test_an_ingest_that_answers_must_be_one_and_must_work(health: Answered, state: str) -> None:
    assert of_ingest("http://x", health).state == state


@pytest.mark.parametrize(
    ("token", "asked", "state"),
    [("t", Answered(415), "ok"), ("t", Answered(401), "not"), ("t", Answered(503), "note"), ("t", None, "note"), (None, None, "not")],
)
def test_a_token_is_right_only_where_ingest_says_so(token: str | None, asked: Answered | None, state: str) -> None:
    assert of_token(token, asked, Settings()).state == state


def test_a_token_that_is_there_and_cannot_be_used_is_not_called_absent(tmp_path: Path) -> None:
    (tmp_path / "ingest.token").write_bytes(b"s3cret\xff")
    found = {check.name: check for check in checkup(Settings(state_dir=tmp_path))}["token"]
    assert found.state is State.NOT and found.said.startswith(f"{tmp_path / 'ingest.token'} cannot be used: ")


@pytest.mark.parametrize(("ours", "state"), [(0.0, "ok"), (3.0, "ok"), (-3.0, "ok"), (3.1, "not"), (-3.1, "not")])
def test_clocks_may_be_three_seconds_apart(ours: float, state: str) -> None:
    assert of_clock(Answered(200, "ok", T0, T0 + timedelta(seconds=ours))).state == state


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (Room(Path("/s/x"), Path("/s"), GIB, True), Check("state folder", State.OK, "/s/x: 1.07 GB free")),
        (Room(Path("/s"), Path("/s"), GIB - 1, True), "1.07 GB free at /s: make room for 1.07 GB, or set state_dir"),
        (Room(Path("/s/x"), Path("/s"), GIB, False), "/s cannot be written by us: give it to us, or set state_dir"),
        (
            Room(Path("/s"), Path("/s"), None, True),
            "/s does not say what is free: look at its file system, or set state_dir",
        ),
    ],
)
def test_a_folder_needs_room_and_us_to_be_allowed_to_write(room: Room, said: Any) -> None:
    told = of_room("state folder", "state_dir", room, GIB)
    assert told == said if isinstance(said, Check) else (told.state, told.said) == ("not", said)


def test_folders_that_are_to_be_written_to_and_cannot_be_are_named_with_what_to_do(tmp_path: Path, httpserver: HTTPServer) -> None:
    ingest(httpserver)
    (tmp_path / "file").write_text("")
    (tmp_path / "good").mkdir()
    named = here(tmp_path, httpserver, INGEST__TOKEN=TOKEN)
    done = called("--json", **named, AGENT__PROBE_PATHS=json.dumps([str(tmp_path / name) for name in ("none", "good", "file")]))
    said = f"{tmp_path}/none is not there: make it, or leave it out; {tmp_path}/file is no folder: name the one that it is in"
    assert (done.exit_code, checks(done)["probe paths"]) == (1, ("not", f"{said}; they stand in agent.probe_paths"))
    done = called("--json", **named, AGENT__PROBE_PATHS=json.dumps([str(tmp_path / "good")]))
    assert checks(done)["probe paths"] == ("ok", str(tmp_path / "good"))
    assert "probe paths" not in checks(called("--json", **named))


@pytest.mark.parametrize(
    ("probe", "said"),
    [
        (Probe(None, None, None), "may not be looked at by us: give it to the agent's user"),
        (Probe(False, 3.0, None), "does not answer: look at its file system"),
        (Probe(False, 0.1, None, errno.ESTALE), "Stale file handle: look at its file system"),
        (Probe(True, 0.1, Standing(True, False)), "cannot be written by us: give it to the agent's user, or leave it out"),
    ],
)
def test_what_is_wrong_with_such_a_folder_is_said_without_touching_it(probe: Probe[Standing], said: str) -> None:
    (told,) = of_probe_paths({"/scratch": probe})
    assert told == Check("probe paths", State.NOT, f"/scratch {said}; they stand in agent.probe_paths")


def test_a_collector_that_fails_is_missing_and_one_that_has_nothing_to_see_is_not() -> None:
    assert of_collector(Outcome("mount", (), 0, 5.0, HUNG)) == Check("sees mount", State.NOT, "nothing: no answer within its deadline")
    assert of_collector(Outcome("oom", (), 0, 0.1, "")) == Check("sees oom", State.NOTE, "nothing here now")
    absent = Outcome("gpu", (), 0, 0.1, "", absent="no NVIDIA driver")
    assert of_collector(absent) == Check("sees gpu", State.ABSENT, "no NVIDIA driver")
    assert well([of_collector(absent)]), "a machine without GPUs is well"


def test_who_is_told_by_nobody_but_a_log_should_know() -> None:
    assert of_receivers(Settings()).state == "note"
    told = (ReceiverSettings(kind="log"), ReceiverSettings(kind="webhook", url="https://chat.example/hook"))
    assert of_receivers(Settings(receivers=told)) == Check("receivers", State.OK, "webhook")
