"""What the control plane may ask of a launcher, and what a launcher does without one."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from surefoot.drill.stack import free_ports
from surefoot.hook.layout import MARK_NAME

SLEEP = "import time\ntime.sleep(600)"


def dead(pid: int) -> bool:
    """Whether there is no such process, not even a zombie."""
    return not Path(f"/proc/{pid}").exists()


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    return free_ports(1)[0]


def checkpoint(root: Path, step: int, *, whole: bool = True) -> Path:
    """A checkpoint with its completeness mark; one that is not whole lacks bytes."""
    folder = root / f"step-{step}"
    folder.mkdir(parents=True)
    (folder / "model.pt").write_bytes(b"x" * (100 if whole else 99))
    (folder / MARK_NAME).write_text(json.dumps({"version": 1, "step": step, "files": {"model.pt": 100}}))
    return folder


def test_the_leader_names_the_attempt(launch, plane):
    started = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID", run="big")
    assert started.output()[0] == b"big-1\n"
    first = plane.calls[0]
    assert {k: first[k] for k in ("run", "node", "attempt", "launch", "state", "ranks")} == {
        "run": "big",
        "node": "node-a",
        "attempt": "",
        "launch": "1",
        "state": "starting",
        "ranks": "",
    }


def test_where_the_launch_it_asks_for_is_used_up_it_takes_the_number_from_the_answer_and_counts_on_from_there(launch, plane):
    plane.first = 7
    assert launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID").output()[0] == b"r-7\n"
    assert plane.calls[0]["launch"] == "1"
    assert {(t["attempt"], t["launch"]) for t in plane.records("surefoot.transition") if t["table"] == "attempts"} == {("r-7", 7)}
    assert launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID").output()[0] == b"r-8\n"


def test_a_running_launcher_gives_a_sign_of_life_with_its_ranks(launch, plane, ranked):
    launch(*ranked(2, SLEEP))
    pids = [plane.pid(r) for r in (0, 1)]
    wanted = f"0:alive:{pids[0]},1:alive:{pids[1]}"
    plane.until(lambda p: any(c["ranks"] == wanted and c["state"] == "running" and c["attempt"] == "r-1" for c in p.calls))


def test_a_restart_takes_evidence_leaves_nothing_of_the_old_attempt_and_resumes_from_the_newest_whole_checkpoint(
    launch, plane, ranked, tmp_path
):
    root = tmp_path / "checkpoints"
    checkpoint(root, 10)
    wanted = checkpoint(root, 20)
    checkpoint(root, 30, whole=False)
    (root / "LATEST").write_text("step-30")
    text = """
import os, time
os.write(1, f"{os.environ['SUREFOOT_ATTEMPT_ID']} {os.environ.get('SUREFOOT_RESUME_FROM')}\\n".encode())  # in one piece
time.sleep(600)
"""
    started = launch(*ranked(2, text), checkpoints=root)
    old = [plane.pid(r) for r in (0, 1)]
    os.kill(old[0], signal.SIGSTOP)
    action = plane.ask("restart_run", new_attempt="r-2", launch=2)
    plane.until(lambda p: p.progress(action) == ["accepted", "done"])
    assert [dead(pid) for pid in old] == [True, True]
    new = [plane.pid(r, "r-2") for r in (0, 1)]
    assert not set(new) & set(old)
    exits = plane.events("rank_exited")
    assert {(e["rank"], e["attempt"], e["code"], e["attrs"]["stopped_by"]) for e in exits} == {
        (0, "r-1", "-9", "launcher"),
        (1, "r-1", "-9", "launcher"),
    }
    stacks = {e["rank"]: e["attrs"] for e in plane.events("capture") if e["code"] == "stacks"}
    assert {r: int(a["pid"]) for r, a in stacks.items()} == {0: old[0], 1: old[1]}
    assert all("Thread" in a["text"] or "rror" in a["text"] for a in stacks.values())  # refused is told, too
    assert plane.states() == [
        ("r-1", "issued", "starting"),
        ("r-1", "starting", "running"),
        ("r-1", "running", "stopping"),
        ("r-1", "stopping", "ended"),
        ("r-2", "issued", "starting"),
        ("r-2", "starting", "running"),
    ]
    begun = plane.transitions("starting")[1]
    assert (begun["launch"], begun["action"], begun["resume_from"]) == (2, action, str(wanted))
    plane.until(lambda p: [line for line in p.lines() if line.body.startswith("r-2")])
    started.process.terminate()
    out, _ = started.output()
    assert out.decode().splitlines()[-1] == f"r-2 {wanted}"


def test_ranks_that_have_a_grace_may_save_their_work(launch, plane, ranked, tmp_path):
    text = f"""
import os, signal, sys, time
def save(*_):
    open({str(tmp_path)!r} + "/saved" + os.environ["RANK"], "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
os.write(1, b"ready\\n")
time.sleep(600)
"""
    started = launch(*ranked(2, text))
    assert [started.process.stdout.readline() for _ in (0, 1)] == [b"ready\n"] * 2
    plane.pid(1)
    plane.ask("stop_run", grace=30.0)
    started.wait()
    assert {p.name for p in tmp_path.glob("saved*")} == {"saved0", "saved1"}
    assert plane.transitions("stopped", "runs")


def test_a_capture_hurts_nothing(launch, plane, ranked, tmp_path):
    captured = tmp_path / "captured"
    started = launch(*ranked(2, f"import os, time\nwhile not os.path.exists({str(captured)!r}):\n    time.sleep(0.05)"))
    plane.pid(0), plane.pid(1)
    action = plane.ask("capture")
    plane.until(lambda p: p.progress(action) == ["accepted", "done"])
    assert {e["rank"] for e in plane.events("capture")} == {0, 1}
    captured.touch()
    assert started.wait() == 0


def test_an_older_term_a_past_deadline_another_attempt_and_an_unknown_kind_are_refused(launch, plane, ranked):
    started = launch(*ranked(1, SLEEP))
    pid = plane.pid(0)
    more = {"new_attempt": "r-2", "launch": 2}
    asked = {
        "term 6 is over": plane.ask("restart_run", term=6, **more),
        "its deadline passed": plane.ask("restart_run", deadline_us=int((time.time() - 1) * 1e6), **more),
        "it is for attempt r-0": plane.ask("restart_run", attempt="r-0", **more),
        "unknown kind": plane.ask("reboot"),
        "names no new attempt": plane.ask("restart_run"),
    }
    for why, action in asked.items():
        plane.until(lambda p, a=action: p.progress(a) == ["refused"])
        assert any(why in e["message"] for e in plane.events("action_progress") if e["attrs"]["action"] == action)
    assert not dead(pid)
    started.process.terminate()
    started.wait()


def test_the_same_request_twice_is_carried_out_once(launch, plane, ranked):
    plane.repeat = True
    started = launch(*ranked(1, SLEEP))
    plane.pid(0)
    action = plane.ask("restart_run", new_attempt="r-2", launch=2)
    second = plane.pid(0, "r-2")
    calls = len(plane.calls)
    plane.until(lambda p: len(p.calls) > calls + 5)
    assert plane.progress(action) == ["accepted", "done"]
    assert not dead(second)
    plane.repeat = False
    started.process.terminate()
    started.wait()


def test_a_failed_attempt_waits_for_its_verdict_however_long_a_person_takes(launch, plane, ranked, tmp_path):
    text = f"""
import os, sys, time
while not os.path.exists({str(tmp_path / "seen")!r}):
    time.sleep(0.02)
sys.exit(5 if os.environ["SUREFOOT_ATTEMPT_ID"] == "r-1" else 0)
"""
    started = launch(*ranked(2, text), SUREFOOT_JOB__CONTROL_TIMEOUT="3")
    plane.pid(0), plane.pid(1)
    (tmp_path / "seen").touch()
    plane.until(lambda p: p.transitions("ended"))
    plane.until(lambda p: [c for c in p.calls if c["state"] == "waiting" and ":exit:5" in c["ranks"]])
    time.sleep(3.5)  # longer than the control plane may be silent: it is not
    assert started.process.poll() is None
    action = plane.ask("restart_run", new_attempt="r-2", launch=2)
    assert started.wait() == 0
    assert plane.progress(action) == ["accepted", "done"]
    assert plane.states("runs")[-1] == ("r", "started", "finished")


def test_end_run_ends_with_the_commands_code(launch, plane, ranked):
    started = launch("sh", "-c", "exit 9")
    plane.until(lambda p: p.transitions("ended"))
    action = plane.ask("end_run")
    assert started.wait() == 9
    assert plane.progress(action) == ["accepted", "done"]
    failed = plane.transitions("failed", "runs")[0]
    assert (failed["exit_code"], failed["reason"]) == (9, "test asks for end_run")


def test_end_run_of_a_running_attempt_stops_it_and_starts_no_other(launch, plane, ranked):
    started = launch(*ranked(2, SLEEP))
    pids = [plane.pid(r) for r in (0, 1)]
    action = plane.ask("end_run")
    assert started.wait() == 137
    assert all(dead(pid) for pid in pids)
    assert plane.progress(action) == ["accepted", "done"]
    assert [s[2] for s in plane.states()] == ["starting", "running", "stopping", "ended"]


def test_a_request_refused_for_its_old_term_is_carried_out_when_the_new_leader_issues_it_again(launch, plane, ranked):
    started = launch(*ranked(1, SLEEP))
    plane.pid(0)
    action = plane.ask("restart_run", term=6, new_attempt="r-2", launch=2)
    plane.until(lambda p: p.progress(action) == ["refused"])
    plane.requests[0]["term"] = 7
    plane.until(lambda p: p.progress(action) == ["refused", "accepted", "done"])
    plane.requests[0]["term"] = plane.term = 8  # again under a third one: it was accepted, so it is only heard
    calls = len(plane.calls)
    plane.until(lambda p: len(p.calls) > calls + 2)
    assert plane.progress(action) == ["refused", "accepted", "done"]
    started.process.terminate()
    started.wait()


def test_an_interrupt_is_written_as_a_stop_before_any_rank_ends(launch, plane, ranked):
    started = launch(*ranked(2, SLEEP))
    plane.pid(0)
    plane.pid(1)
    started.process.send_signal(signal.SIGINT)
    started.wait()
    assert plane.states("runs")[-1] == ("r", "started", "stopped")
    order = [r.attributes.get("new_state") or r.attributes.get("kind") for r in plane.received if r.name]
    assert order.index("stopping") < order.index("rank_exited")
    assert {e["attrs"]["stopped_by"] for e in plane.events("rank_exited")} == {"launcher"}


def test_a_signal_during_a_restart_ends_the_run_instead(launch, plane, script):
    """The command outlives the signal of the restart, and ends at the one that came to the launcher meanwhile."""
    text = """
import signal, time
def once(number, _):
    signal.signal(number, signal.SIG_DFL)
    print("asked", flush=True)
signal.signal(signal.SIGTERM, once)
print("ready", flush=True)
while True:
    time.sleep(600)
"""
    started = launch(*script(text))
    assert started.process.stdout.readline() == b"ready\n"
    action = plane.ask("restart_run", new_attempt="r-2", launch=2, grace=60.0)
    assert started.process.stdout.readline() == b"asked\n", "else the two signals may be taken for one"
    started.process.terminate()
    assert started.wait() == 143
    assert plane.progress(action) == ["accepted", "failed"]
    assert not plane.transitions("starting")[1:]


def test_a_signal_ends_the_wait_for_a_verdict(launch, plane):
    started = launch("sh", "-c", "exit 9")
    plane.until(lambda p: p.transitions("ended"))
    started.process.terminate()
    assert started.wait() == 9


def test_no_verdict_in_time_ends_the_run(launch, plane):
    assert launch("sh", "-c", "exit 9", SUREFOOT_JOB__VERDICT_TIMEOUT="0.5").wait() == 9
    assert plane.transitions("failed", "runs")[0]["reason"] == "no verdict within 0.5 s"


def test_without_a_control_plane_a_start_up_failure_is_tried_twice_in_all(launch, plane, tmp_path):
    started = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID; exit 4", port=free_port(), SUREFOOT_JOB__CONTROL_TIMEOUT="0.3")
    out, _ = started.output()
    assert (out, started.process.returncode) == (b"r-1\nr-2\n", 4)


def test_a_run_started_again_under_its_name_uses_no_attempt_id_twice(launch, plane, tmp_path):
    for wanted in (b"r-1\n", b"r-2\n"):
        out, _ = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID", port=free_port(), SUREFOOT_JOB__CONTROL_TIMEOUT="0.3").output()
        assert out == wanted
    shutil.rmtree(tmp_path / "rings")  # as a reboot does: they lie in memory
    out, _ = launch("sh", "-c", "echo $SUREFOOT_ATTEMPT_ID").output()
    assert (out, plane.calls[0]["launch"]) == (b"r-3\n", "3")


def test_a_control_plane_that_never_issues_is_done_without_and_reads_of_it_later(launch, plane):
    plane.issue = False
    launch("sh", "-c", "exit 0", SUREFOOT_JOB__CONTROL_TIMEOUT="0.5").wait()
    assert plane.states()[:2] == [("r-1", "", "issued"), ("r-1", "issued", "starting")]


def test_what_happened_while_ingest_was_away_is_sent_when_it_is_back(launch, plane, ranked, tmp_path):
    plane.away = True
    text = f"import os, time\nos.write(1, b'up\\n')\nwhile not os.path.exists({str(tmp_path / 'told')!r}):\n    time.sleep(0.05)"
    started = launch(*ranked(2, text), SUREFOOT_JOB__CONTROL_TIMEOUT="0.3")
    assert started.process.stdout.readline() == b"up\n"
    plane.away = False
    plane.pid(0), plane.pid(1)
    (tmp_path / "told").touch()
    assert started.wait() == 0
    assert [s[2] for s in plane.states()] == ["issued", "starting", "running", "ended"]
    assert len(plane.events("rank_exited")) == 2


def test_an_attempt_that_made_steps_is_restarted_up_to_the_limit_when_nobody_can_be_asked(launch, script):
    text = """
import os
from surefoot import StepMonitor
monitor = StepMonitor()
with monitor.step(1):
    pass
monitor.close()
print(os.environ["SUREFOOT_ATTEMPT_ID"], flush=True)
raise SystemExit(6)
"""
    command = [c for c in script(text) if c != "-S"]
    started = launch(*command, port=free_port(), SUREFOOT_JOB__CONTROL_TIMEOUT="0.3", SUREFOOT_JOB__MAX_RESTARTS_PER_HOUR="2")
    out, _ = started.output()
    assert (out, started.process.returncode) == (b"r-1\nr-2\nr-3\n", 6)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_launcher_that_is_ended_before_its_first_attempt_starts_nothing(launch, plane, number):
    plane.issue = False
    started = launch("sh", "-c", "echo started", SUREFOOT_JOB__CONTROL_TIMEOUT="30")
    plane.until(lambda p: p.calls)
    started.process.send_signal(number)
    assert started.output()[0] == b""
    assert started.process.returncode == 128 + number


def test_a_failure_that_the_control_plane_cannot_keep_is_decided_here(launch, plane):
    plane.issue = plane.full = True
    started = launch("sh", "-c", "echo tried; exit 6", SUREFOOT_JOB__CONTROL_TIMEOUT="0.5", SUREFOOT_JOB__MAX_RESTARTS_PER_HOUR="9")
    out, _ = started.output()
    assert (out, started.process.returncode) == (b"tried\ntried\n", 6)  # a failure at the start is restarted once


def test_the_last_words_of_a_run_wait_for_the_next_launcher_where_nobody_took_them(launch, plane, tmp_path):
    away, told = tmp_path / "away", tmp_path / "told"
    started = launch("sh", "-c", f"until [ -e {away} ]; do sleep 0.05; done")
    plane.until(lambda p: p.transitions("running"))
    plane.away = True
    away.touch()
    assert started.wait() == 0
    assert not plane.transitions("ended")
    assert list((tmp_path / "rings" / "undelivered").iterdir())
    plane.away = False
    following = launch("sh", "-c", f"until [ -e {told} ]; do sleep 0.05; done", run="s")
    plane.until(lambda p: ("r", "started", "finished") in p.states("runs"))
    told.touch()
    following.wait()
    assert plane.states("runs")[-3:] == [("s", "", "started"), ("r", "started", "finished"), ("s", "started", "finished")]
    assert [t["attempt"] for t in plane.transitions("ended")] == ["r-1", "s-1"]
    assert not list((tmp_path / "rings" / "undelivered").iterdir())


def test_a_command_that_heeds_no_interrupt_is_killed_at_the_second_one(launch, plane, script):
    text = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('ready', flush=True)\ntime.sleep(600)"
    started = launch(*script(text))
    assert started.process.stdout.readline() == b"ready\n"
    started.process.send_signal(signal.SIGINT)
    plane.until(lambda p: p.transitions("stopping"))
    time.sleep(0.5)
    assert started.process.poll() is None
    started.process.send_signal(signal.SIGINT)
    assert started.wait() == 137
    assert plane.states("runs")[-1] == ("r", "started", "stopped")


def test_a_launcher_that_was_paused_for_longer_than_its_patience_takes_the_control_plane_for_as_alive_as_before(launch, plane):
    """As on a machine that is suspended: the silence was its own."""
    started = launch("sh", "-c", "exit 5", SUREFOOT_JOB__CONTROL_TIMEOUT="0.5")
    plane.until(lambda p: [c for c in p.calls if c["state"] == "waiting"])
    started.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    started.process.send_signal(signal.SIGCONT)
    calls = len(plane.calls)
    plane.until(lambda p: len(p.calls) > calls + 2)
    action = plane.ask("end_run")
    assert started.wait() == 5
    assert plane.progress(action) == ["accepted", "done"]
    assert [s[2] for s in plane.states()] == ["starting", "running", "ended"], "it started no other by itself"
