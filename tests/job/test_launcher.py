"""`surefoot run` seen from outside: real processes, and a real HTTP peer in the place of ingest."""

import hashlib
import json
import os
import random
import signal
import time
from pathlib import Path

import pytest

from exporters.job.entry import run
from pipeline.errors import InputError
from pipeline.settings import Settings

SLEEP = "import time\ntime.sleep(600)"


def gone(pid: int, seconds: float = 30.0) -> bool:
    """Whether the process ends within so long (a zombie has ended)."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(("command", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -KILL $$", 137)])
def test_the_exit_code_is_the_commands(launch, plane, command, code):
    started = launch("sh", "-c", command)
    if code:
        plane.until(lambda p: p.transitions("ended"))
        plane.ask("end_run")
    assert started.wait() == code
    ended = plane.transitions("ended")[0]
    assert ended["exit_code"] == (code if code < 128 else 128 - code)
    assert plane.states("runs") == [("r", "", "started"), ("r", "started", "failed" if code else "finished")]


def test_an_attempt_goes_through_its_states_in_order(launch, plane):
    launch("sh", "-c", "exit 0").wait()
    assert plane.states() == [("r-1", "issued", "starting"), ("r-1", "starting", "running"), ("r-1", "running", "ended")]
    times = [t["at"] for t in plane.records("surefoot.transition")]
    assert times == sorted(set(times))
    assert {t["actor"] for t in plane.records("surefoot.transition")} == {"launcher:node-a"}


def test_a_command_that_does_not_exist_ends_with_127_and_one_line(launch, plane):
    out, err = launch("no-such-command-here").output()
    assert (out, err) == (b"", b"surefoot run: there is no command 'no-such-command-here'\n")
    assert plane.received == []


def test_a_file_that_is_no_program_ends_with_126(launch, plane, tmp_path):
    path = tmp_path / "broken"
    path.write_bytes(b"\x7fELF nonsense")
    path.chmod(0o755)
    started = launch(str(path))
    plane.until(lambda p: p.transitions("ended"))
    plane.ask("end_run")
    assert started.wait() == 126
    assert b"cannot run" in started.output()[1]


def test_an_empty_command_and_a_run_id_that_is_no_file_name_are_refused_with_what_to_do():
    with pytest.raises(InputError, match="after --"):
        run(Settings(), [], run_id=None, checkpoints=None)
    with pytest.raises(InputError, match="letters, digits"):
        run(Settings(), ["true"], run_id="../up", checkpoints=None)


def test_output_passes_byte_for_byte(launch, script):
    text = """
import os, random
random.seed(5)
for fd in (1, 2):
    data = random.randbytes(1_500_000) + b"[rank3]: a\\r\\nno line end"
    done = 0
    while done < len(data):
        done += os.write(fd, data[done:done + 100_000])
"""
    started = launch(*script(text))
    out, err = started.output()
    random.seed(5)
    wanted = [random.randbytes(1_500_000) + b"[rank3]: a\r\nno line end" for _ in (1, 2)]
    assert hashlib.sha256(out).digest() == hashlib.sha256(wanted[0]).digest()
    assert hashlib.sha256(err).digest() == hashlib.sha256(wanted[1]).digest()


def test_output_that_its_reader_has_not_taken_when_the_run_ends_is_not_lost(launch, plane):
    """As with a pager: the run is over and told, and the launcher stays until all is read."""
    started = launch("sh", "-c", "seq 1 100000; echo end >&2")
    plane.until(lambda p: p.transitions("finished", "runs"))
    time.sleep(1.0)
    assert started.process.poll() is None
    out, err = started.output()
    assert out == b"".join(b"%d\n" % n for n in range(1, 100_001)) and err == b"end\n"
    assert started.process.returncode == 0


def test_an_output_that_a_stranger_keeps_open_is_not_waited_for(launch, plane, tmp_path):
    """The stranger is no process of the command's: this test takes the writing end of its pipe from /proc."""
    told = tmp_path / "told"
    started = launch("sh", "-c", f"echo $$; until [ -e {told} ]; do sleep 0.05; done")
    pid = int(started.process.stdout.readline())
    with open(f"/proc/{pid}/fd/1", "wb"):
        told.touch()
        assert started.wait() == 0


def test_two_streams_into_one_file_keep_their_order(launch):
    out, _ = launch("sh", "-c", "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done", merged=True).output()
    assert out == b"".join(b"%d\n%d\n" % (i, i) for i in range(1, 10))


def test_lines_are_shipped_with_run_attempt_stream_and_rank(launch, plane):
    launch("sh", "-c", "echo one; echo '[rank3]: step=10 t=0.51[rank5]: step=10 t=0.52' >&2; echo '[default1]: local'; printf end").wait()
    lines = {line.body: line.attributes for line in plane.lines()}
    common = {"run": "r", "attempt": "r-1"}
    assert lines["one"] == common | {"stream": "stdout"}
    assert lines["[rank3]: step=10 t=0.51"] == common | {"stream": "stderr", "rank": 3}
    assert lines["[rank5]: step=10 t=0.52"] == common | {"stream": "stderr", "rank": 5}
    assert lines["[default1]: local"] == common | {"stream": "stdout"}  # the node's offset is not known
    assert lines["end"] == common | {"stream": "stdout"}


def test_a_reader_that_goes_away_does_not_end_the_command(launch, plane, tmp_path):
    gone_away = tmp_path / "gone"
    started = launch("sh", "-c", f"until [ -e {gone_away} ]; do sleep 0.05; done; for i in 1 2 3; do echo $i; done; touch {tmp_path}/done")
    started.process.stdout.close()
    gone_away.touch()
    assert started.wait() == 0
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGUSR2", "SIGHUP", "SIGINT", "SIGTERM"])
def test_signals_pass_through_to_the_command_once(launch, plane, script, name):
    text = f"""
import signal, sys, time
seen = []
signal.signal(signal.{name}, lambda n, f: seen.append(n))
print("ready", flush=True)
deadline = time.monotonic() + 60
while not seen and time.monotonic() < deadline:
    time.sleep(0.02)
time.sleep(0.3)
sys.exit(40 + len(seen))
"""
    started = launch(*script(text))
    assert started.process.stdout.readline() == b"ready\n"
    started.process.send_signal(signal.Signals[name])
    if name.startswith("SIGUSR"):
        plane.until(lambda p: p.transitions("ended"))
        plane.ask("end_run")
    assert started.wait() == 41
    if not name.startswith("SIGUSR"):  # a run that was asked to end is not started again: no verdict is waited for
        assert plane.transitions("stopped", "runs")[0]["reason"] == f"ended by {name} to the launcher"


def test_the_command_gets_its_names_and_an_unharmed_environment(launch, tmp_path):
    started = launch("sh", "-c", "env; grep SigIgn /proc/self/status", checkpoints=tmp_path / "none", MINE="kept")
    out = started.output()[0].decode()
    given = dict(line.partition("=")[::2] for line in out.splitlines() if "=" in line)
    assert given["MINE"] == "kept"
    assert not [name for name in given if "TOKEN" in name], "a training has no use for our secrets, and may print its environment"
    assert given["SUREFOOT_RUN_ID"] == "r"
    assert given["SUREFOOT_ATTEMPT_ID"] == "r-1"
    assert given["SUREFOOT_RING_DIR"] == str(tmp_path / "rings")
    assert given["SUREFOOT_NODE"] == "node-a"
    assert given["SUREFOOT_CHECKPOINT_DIR"] == str(tmp_path / "none")
    assert "SUREFOOT_RESUME_FROM" not in given
    ignored = int(next(line for line in out.splitlines() if line.startswith("SigIgn")).split()[1], 16)
    assert ignored & (1 << (signal.SIGPIPE - 1)) == 0
    assert (tmp_path / "rings").stat().st_mode & 0o7777 == 0o1777


def test_each_ranks_exit_reaches_ingest_at_once_with_code_and_signal(launch, plane, ranked, tmp_path):
    """At once: while the others, which torchrun ends then, are still on their way out."""
    text = f"""
import os, signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.write(1, b"ready\\n")
while not os.path.exists({str(tmp_path / "heard")!r}):
    time.sleep(0.02)
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
time.sleep(600)
"""
    started = launch(*ranked(3, text))
    assert [started.process.stdout.readline() for _ in range(3)] == [b"ready\n"] * 3
    pids = [plane.pid(r) for r in range(3)]
    assert plane.transitions("running")[0]["ranks"] == 3
    os.kill(pids[1], signal.SIGKILL)
    plane.until(lambda p: p.events("rank_exited"))
    assert [e["rank"] for e in plane.events("rank_exited")] == [1]
    assert not plane.transitions("ended")
    (tmp_path / "heard").touch()
    plane.until(lambda p: p.transitions("ended"))
    exits = {e["rank"]: e for e in plane.events("rank_exited")}
    assert (exits[1]["code"], exits[1]["attrs"]["signal"], exits[1]["attrs"].get("stopped_by", "")) == ("-9", "SIGKILL", "")
    for rank in (0, 2):
        assert (exits[rank]["code"], exits[rank]["attrs"]["stopped_by"]) == ("-15", "torchrun")
    assert plane.transitions("ended")[0]["reason"] == "rank 1 killed by SIGKILL"
    plane.ask("end_run")
    assert started.wait() == 1


def test_an_exit_code_of_a_rank_and_its_error_file_are_recorded(launch, plane, ranked, tmp_path):
    text = f"""
import json, os, sys, time
if os.environ["RANK"] == "1":
    while not os.path.exists({str(tmp_path / "seen")!r}):
        time.sleep(0.02)
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as f:
        json.dump({{"message": {{"message": "ValueError: bad batch", "extraInfo": {{}}}}}}, f)
    sys.exit(7)
time.sleep(600)
"""
    started = launch(*ranked(2, text), TORCHELASTIC_ERROR_FILE=str(tmp_path / "error.json"))
    plane.pid(1)
    (tmp_path / "seen").touch()
    plane.until(lambda p: p.transitions("ended"))
    first = next(e for e in plane.events("rank_exited") if e["rank"] == 1)
    assert (first["code"], first["attrs"]["error"]) == ("7", "ValueError: bad batch")
    assert plane.transitions("ended")[0]["reason"] == "rank 1 exited with 7: ValueError: bad batch"
    plane.ask("end_run")
    started.wait()


def test_data_loaders_and_helpers_of_a_rank_are_no_ranks(launch, plane, ranked, tmp_path):
    helper = f"until [ -e {tmp_path}/seen ]; do sleep 0.05; done"
    started = launch(*ranked(2, f"import os, subprocess\nsubprocess.run(['sh', '-c', {helper!r}], env=os.environ | {{'RANK': '9'}})"))
    plane.pid(0), plane.pid(1)
    time.sleep(0.5)  # in which the helpers may be taken for ranks
    (tmp_path / "seen").touch()
    assert started.wait() == 0
    assert sorted((e["rank"], e["code"]) for e in plane.events("rank_exited")) == [(0, "0"), (1, "0")]


def test_a_launcher_that_dies_takes_the_command_with_it(launch, plane, script):
    started = launch(*script("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"))
    pid = int(started.process.stdout.readline())
    started.process.kill()
    assert gone(pid)


def test_orphans_are_waited_for_and_leave_no_zombie(launch, plane, script):
    text = """
import json, os, subprocess, time
each = "sleep 0.2 > /dev/null & echo $!"
orphans = [int(subprocess.run(["sh", "-c", each], stdout=subprocess.PIPE).stdout) for _ in range(5)]
deadline = time.monotonic() + 30
while (left := [n for n in orphans if os.path.exists(f"/proc/{n}")]) and time.monotonic() < deadline:
    time.sleep(0.05)
print(json.dumps([len(set(orphans)), left]), flush=True)
"""
    out, _ = launch(*script(text)).output()
    assert json.loads(out) == [5, []]


def test_what_a_command_leaves_behind_is_ended_with_it(launch, plane, script):
    text = """
import os, subprocess, sys
left = subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(left.pid, flush=True)
"""
    started = launch(*script(text))
    out, _ = started.output()
    assert started.process.returncode == 0
    assert gone(int(out), 0.1)


def test_a_run_id_is_made_of_the_commands_name_and_the_time(launch, plane):
    launch("sh", "-c", "exit 0", run="").wait()
    run_name = plane.transitions("started", "runs")[0]["run"]
    assert run_name.startswith("sh-20")
    assert plane.transitions("started", "runs")[0]["command"] == "sh -c 'exit 0'"


def test_the_launchers_own_python_gives_way_to_the_command(launch, plane):
    out, _ = launch("sh", "-c", "echo $$; cat /proc/$$/comm").output()
    pid, name = out.decode().split()
    assert name == "sh"
    assert plane.events("rank_started")[0]["attrs"]["pid"] == pid
