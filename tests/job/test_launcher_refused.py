"""A launcher that the control plane does not take: what has not begun does not begin, what runs goes on."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from exporters.job.control import Answer, Client, Request, Situation, error_of
from exporters.job.loop import Loop
from exporters.job.meeting import Meeting
from exporters.job.surroundings import Search
from pipeline.catalog.runs import Nodes
from pipeline.errors import ControlRefused, ControlUnavailable
from pipeline.settings import JobSettings

WHY = "another launcher of run r is heard under the node name node-a: give each node a name of its own (SUREFOOT_NODE)"
TAKEN = (409, json.dumps({"code": 6, "message": WHY}))
WRONG_TOKEN = (401, json.dumps({"code": 16, "message": "the bearer token is missing or wrong"}))
SEVERAL = ("--nnodes", "2")  # behind a command of sh, which does not heed it: the launcher reads it as torchrun's


def warnings(err: bytes) -> list[str]:
    return err.decode().splitlines()


@pytest.mark.parametrize("words", [(), SEVERAL], ids=["one node", "several"])
def test_one_that_is_not_let_in_ends_with_the_reason_and_neither_begins_nor_says_anything_of_the_run(plane, tmp_path, words):
    plane.refusal = TAKEN
    environment = {
        "SUREFOOT_INGEST__URL": f"http://127.0.0.1:{plane.port}",
        "SUREFOOT_INGEST__TOKEN": "test-token",
        "SUREFOOT_STATE_DIR": str(tmp_path / "state"),
        "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
        "SUREFOOT_NODE": "node-a",
        "SUREFOOT_JOB__CONTROL_TIMEOUT": "0.5",  # it is no silence: nothing begins after that either
    }
    command = ["sh", "-c", f"touch {tmp_path}/begun", *words]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "surefoot", "run", "--run-id", "r", "--", *command],
        env=os.environ | environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == f"surefoot: nothing was begun: {WHY}"
    assert "waiting for the other launcher to end" in done.stderr
    assert not (tmp_path / "begun").exists()
    assert plane.received == []
    assert 4.0 < time.monotonic() - began < 20.0, "as long as one that is gone may be counted on"


def test_one_that_is_let_in_a_little_later_begins_with_the_attempt_that_is_issued_then(launch, plane):
    plane.refusal, plane.issue = TAKEN, False
    started = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID", SUREFOOT_JOB__CONTROL_TIMEOUT="2")
    until = time.monotonic() + 20
    while len(plane.refused_at) < 2 or plane.refused_at[-1] - plane.refused_at[0] < 2.5:
        assert time.monotonic() < until
        time.sleep(0.05)
    plane.refusal = None
    plane.until(lambda p: p.calls)
    time.sleep(0.3)  # the leader takes as long
    plane.issue = True
    out, err = started.output()
    assert (out, started.process.returncode) == (b"r-1\n", 0)
    assert plane.states()[0] == ("r-1", "issued", "starting"), "issued by the leader, not minted here"
    assert [line for line in warnings(err) if "waiting for the other launcher" in line and WHY in line]


def test_one_that_is_ended_at_the_door_says_nothing_of_the_run(launch, plane):
    plane.refusal = TAKEN
    started = launch("sh", "-c", "echo begun")
    until = time.monotonic() + 20
    while not plane.refused_at:
        assert time.monotonic() < until
        time.sleep(0.05)
    time.sleep(0.3)
    started.process.terminate()
    assert started.output()[0] == b""
    assert started.process.returncode == 128 + 15
    assert plane.received == []


def test_what_runs_goes_on_and_warns_once_however_often_it_is_refused(launch, plane, tmp_path):
    started = launch("sh", "-c", f"until [ -e {tmp_path}/enough ]; do sleep 0.05; done; echo whole")
    plane.until(lambda p: any(c["attempt"] for c in p.calls))
    plane.refusal = TAKEN
    until = time.monotonic() + 20
    while len(plane.refused_at) < 5:
        assert time.monotonic() < until
        time.sleep(0.05)
    plane.refusal = None
    calls = len(plane.calls)
    plane.until(lambda p: len(p.calls) > calls + 1)  # so the first of them was answered
    (tmp_path / "enough").touch()
    out, err = started.output()
    assert (out, started.process.returncode) == (b"whole\n", 0)
    told = [line for line in warnings(err) if "control plane" in line]
    assert len(told) == 2
    assert "control plane takes another launcher for this one; the command goes on" in told[0] and WHY in told[0]
    assert "control plane answers again" in told[1]


def called(tmp_path: Path, port: int, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The command line's own launcher, to its end."""
    given = {
        "SUREFOOT_INGEST__URL": f"http://127.0.0.1:{port}",
        "SUREFOOT_STATE_DIR": str(tmp_path / "state"),
        "SUREFOOT_RING_DIR": str(tmp_path / "rings"),
        "SUREFOOT_NODE": "node-a",
        "SUREFOOT_JOB__CONTROL_TIMEOUT": "0.5",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    command = [sys.executable, "-P", "-m", "surefoot", "run", "--run-id", "r", "--", *words]
    return subprocess.run(command, env=os.environ | given | more, capture_output=True, text=True, timeout=60, check=False)


def test_a_run_that_goes_with_another_count_of_nodes_is_refused_at_once_as_waiting_changes_nothing(plane, tmp_path):
    why = "run r goes with --nodes 2 on b, and with --nodes 3 here: give all its launchers the same"
    plane.refusal = (409, json.dumps({"code": 9, "message": why}))
    done = called(tmp_path, plane.port, "sh", "-c", f"touch {tmp_path}/begun", SUREFOOT_INGEST__TOKEN="test-token")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"surefoot: nothing was begun: {why}")
    assert "waiting" not in done.stderr and not (tmp_path / "begun").exists()


def test_without_a_token_the_command_runs_unseen_with_one_line_that_says_so_and_none_is_made(plane, tmp_path):
    done = called(tmp_path, plane.port, "true")
    told = [line for line in done.stderr.splitlines() if "level=warning" in line and ("token" in line or "control plane" in line)]
    assert done.returncode == 0 and len(told) == 1, done.stderr
    assert "no token for ingest: the run goes unseen" in told[0] and f"{tmp_path}/state/ingest.token: there is no token" in told[0]
    assert not (tmp_path / "state/ingest.token").exists()


def test_with_a_wrong_token_nobody_says_that_the_control_plane_does_not_answer(plane, tmp_path):
    plane.refusal = WRONG_TOKEN
    done = called(tmp_path, plane.port, "echo", "{master}", "--nnodes", "2", SUREFOOT_INGEST__TOKEN="wrong")
    assert "the control plane refuses this launcher: {master} cannot be known without it" in done.stderr
    assert "does not answer" not in done.stderr


def test_a_call_that_fails_is_told_by_endpoint_and_cause_without_what_was_asked():
    client = Client("http://127.0.0.1:9", "t", "r", "a")
    with pytest.raises(ControlUnavailable) as caught:
        client.poll(Situation("r-1", 1, "running", ""), (), 0.0)
    assert str(caught.value) == "http://127.0.0.1:9: Connection refused"


@pytest.mark.parametrize("refusal", [WRONG_TOKEN, (403, "<html>no\nway"), (422, "")], ids=["401", "403", "422"])
def test_any_other_refusal_is_told_once_with_its_reason_and_the_run_goes_on_without_a_control_plane(launch, plane, refusal):
    plane.refusal = refusal
    started = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID; sleep 1", SUREFOOT_JOB__CONTROL_TIMEOUT="0.5")
    out, err = started.output()
    assert (out, started.process.returncode) == (b"r-1\n", 0)
    told = [line for line in warnings(err) if "control plane" in line]
    assert len(told) == 1 and len(plane.refused_at) > 1
    assert "control plane refuses this launcher; the run goes on without it" in told[0]
    reason = {401: "answered 401: the bearer token is missing or wrong", 403: "answered 403: <html>no way", 422: "answered 422"}
    assert reason[refusal[0]] in told[0]


def test_each_process_gives_an_id_of_its_own_with_every_question(launch, plane):
    for _ in range(2):
        launch("sh", "-c", "sleep 0.5").wait()
    ids = list(dict.fromkeys(call["instance"] for call in plane.calls))
    assert len(ids) == 2 and all(len(one) == 32 for one in ids)
    assert len(plane.calls) > 2


@pytest.mark.parametrize(
    ("status", "body", "error", "taken"),
    [
        (409, TAKEN[1].encode(), ControlRefused, True),
        (409, b"", ControlRefused, False),  # of something between us and ingest
        (400, b'{"message": "parameter run is missing"}', ControlRefused, False),
        (404, b"[]", ControlRefused, False),
        (408, b"", ControlUnavailable, None),
        (429, b"", ControlUnavailable, None),
        (503, b'{"message": "the store is away"}', ControlUnavailable, None),
        (302, b"", ControlUnavailable, None),
    ],
)
def test_what_asking_again_may_mend_is_no_refusal(status, body, error, taken):
    found = error_of(status, body, "http://h/v1/control")
    assert type(found) is error
    assert getattr(found, "taken", None) is taken
    assert "\n" not in str(error_of(status, b"a\nb\x1b[31m" + b"x" * 10_000, "u")) and len(str(error_of(status, b"x" * 10_000, "u"))) < 400


def test_who_waits_for_others_refuses_to_take_evidence_where_none_runs_and_leaves_a_spares_to_whom_it_is_for(launch, plane):
    plane.issue = False
    started = launch("sh", "-c", "true", *SEVERAL)
    plane.until(lambda p: p.calls)
    elsewhere = plane.ask("capture", attempt="r-1")
    here = plane.ask("capture", attempt="")
    plane.until(lambda p: p.progress(here))
    assert [(e["code"], e["message"]) for e in plane.events("action_progress")] == [("refused", "no attempt runs here")]
    assert plane.progress(elsewhere) == []
    started.process.terminate()
    started.wait()


@pytest.mark.parametrize("waits", ["for the next attempt", "for the others' end"])
def test_so_does_one_whose_attempt_was_stopped_or_has_ended_well(waits):
    told: list[tuple[str, str, str, str]] = []
    journal = SimpleNamespace(progress=lambda attempt, request, code, message: told.append((attempt, request.id, code, message)))
    loop = Loop()
    poller = SimpleNamespace(over="", last=Answer(7), heard=True, open=False)
    nodes, times = Nodes(2, 2), JobSettings(verdict_timeout=0.2)
    meeting = Meeting("a", nodes, loop, poller, journal, lambda *_: None, loop.turn, lambda _: "", times, True)
    loop.requests.append(Request("evidence", "capture", "r-1", 7))
    if waits == "for the next attempt":
        meeting.next(Request("again", "restart_run", "r-1", 7), "r-1", Search(None), 0)
    else:
        meeting.end("r-1", 1, None)
    assert told[0] == ("r-1", "evidence", "refused", "no attempt runs here")
