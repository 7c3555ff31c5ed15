"""`surefoot agent`, as a person or a script calls it on a machine with nothing special."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from prometheus_client.parser import text_string_to_metric_families

from surefoot.cli import cli

ROOT = Path(__file__).parents[2]
TREE = ROOT / "tests/fixtures"
SAVED = ["--path.procfs", str(TREE / "proc"), "--path.sysfs", str(TREE / "sys"), "--path.kmsg", os.devnull]


def called(tmp_path: Path, *words: str) -> Result:
    given = {"NODE": "node1", "STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings")}
    return CliRunner().invoke(cli, ["agent", *words], env={f"SUREFOOT_{k}": v for k, v in given.items()})


def test_once_as_json_has_the_readings_of_a_saved_tree_by_device_with_units(tmp_path: Path) -> None:
    done = called(tmp_path, "--once", "--json", *SAVED)
    assert (done.exit_code, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    found = json.loads(done.stdout)
    host = next(device for device in found["devices"] if device["family"] == "host")
    assert (found["node"], host["device"], host["readings"]["host.load1"]) == ("node1", {"node": "node1"}, {"value": 1.25, "unit": "1"})
    assert host["readings"]["host.memory.total"] == {"value": 16777216000, "unit": "By"}
    assert "host.shm.total" not in host["readings"], "that machine's memory disk cannot be asked here"
    scratch = next(d for d in found["devices"] if d["device"].get("mount_point") == "/scratch")
    assert scratch["attributes"]["type"] == "xfs"
    assert scratch["readings"] == {"mount.read_only": {"value": 1, "unit": "1"}}, "nor can its mounts"
    states = {one["name"]: (one["state"], one.get("why", "")) for one in found["collectors"]}
    assert states["cgroup"] == ("absent", "no rank of a run is on this node")
    assert (states["host"], states["disk"]) == (("ok", ""), ("ok", ""))
    assert isinstance(found["events"], list)


def test_once_tells_what_a_saved_kernel_log_holds_and_that_a_file_is_none(tmp_path: Path) -> None:
    log = tmp_path / "kernel.log"
    log.write_text("[    1.000000] Kernel panic - not syncing: x\n")
    done = called(tmp_path, "--once", "--json", *SAVED[:-1], str(log))
    found = json.loads(done.stdout)
    (kernel,) = (one for one in found["collectors"] if one["name"] == "kernel")
    assert (kernel["state"], kernel["source"], len(found["events"])) == ("ok", str(log), 1)
    assert "# kernel: events, which --json tells: 1\n" in called(tmp_path, "--once", *SAVED[:-1], str(log)).stdout
    log.write_text("name,count\n")
    done = called(tmp_path, "--once", *SAVED[:-1], str(log))
    assert f"# kernel: error: {log} is no kernel log: none of its 1 lines has the form of /dev/kmsg, dmesg or syslog\n" in done.stdout


def test_once_of_this_machine_says_what_is_absent_and_ends_with_0(tmp_path: Path) -> None:
    done = called(tmp_path, "--once")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "# cgroup: absent: no rank of a run is on this node\n" in done.stdout
    assert 'surefoot_agent_absent{node="node1",collector="cgroup"} 1\n' in done.stdout
    assert not (tmp_path / "state").exists() and not (tmp_path / "rings").exists()


def test_an_empty_tree_fails_no_command(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    folder = str(tmp_path / "empty")
    done = called(tmp_path, "--once", "--json", "--path.procfs", folder, "--path.sysfs", folder, "--path.kmsg", os.devnull)
    assert (done.exit_code, done.stderr) == (0, "")
    states = {one["name"]: one["state"] for one in json.loads(done.stdout)["collectors"]}
    assert states["disk"] == "failed" and states["cgroup"] == "absent"


def test_once_into_a_textfile_prints_nothing(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    done = called(tmp_path, "--once", "--textfile", str(tmp_path / "out"), *SAVED)
    assert (done.exit_code, done.stdout) == (0, "")
    text = (tmp_path / "out" / "surefoot.prom").read_text()
    assert "surefoot_host_load1" in {family.name for family in text_string_to_metric_families(text)}
    assert all(len(line.rsplit("} ", 1)[1].split()) == 1 for line in text.splitlines() if not line.startswith("#")), "no times"
    gone = called(tmp_path, "--once", "--textfile", str(tmp_path / "none"))
    assert gone.exit_code != 0 and "agent.textfile" in gone.output


@pytest.mark.parametrize("words", [("--json",), ("--once", "--dry-run"), ("--compat", "zabbix"), ("--path.sysfs", "")])
def test_what_does_not_go_together_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = called(tmp_path, *words)
    assert done.exit_code == 2 and "Traceback" not in done.output


def test_a_dry_run_prints_what_it_would_send_until_it_is_stopped_and_leaves_nothing(tmp_path: Path) -> None:
    given = {"NODE": "node1", "STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "AGENT__INTERVAL": "0.2"}
    env = os.environ | {f"SUREFOOT_{k}": v for k, v in given.items()}
    command = [sys.executable, "-m", "surefoot", "agent", "--dry-run", *SAVED]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as agent:
        assert agent.stdout and agent.stderr
        lines = [json.loads(agent.stdout.readline())]
        end = time.monotonic() + 60
        while sum(line.get("metric") == "host.load1" for line in lines) < 2 and time.monotonic() < end:
            lines.append(json.loads(agent.stdout.readline()))
        agent.send_signal(signal.SIGINT)
        rest, said = agent.communicate(timeout=60)
    assert (agent.returncode, said) == (0, "")
    assert all(isinstance(json.loads(line), dict) for line in rest.splitlines()[1:])  # of the first, a part was read before
    assert lines[0]["surefoot.event"]["kind"] == "agent_started"
    assert {"metric": "host.load1", "unit": "1", "points": [{"value": 1.25, "node": "node1"}]} in lines
    assert not (tmp_path / "state").exists()


def test_a_collector_that_hangs_costs_once_its_own_readings_and_no_more_than_the_deadline(tmp_path: Path) -> None:
    """A kernel log that never answers stands for a hung driver: a pipe that nobody writes to, where /proc has its disks."""
    proc = shutil.copytree(TREE / "proc", tmp_path / "proc")
    (proc / "diskstats").unlink()
    os.mkfifo(proc / "diskstats")
    given = {"NODE": "node1", "STATE_DIR": str(tmp_path / "state"), "RING_DIR": str(tmp_path / "rings"), "AGENT__TIMEOUT": "0.5"}
    env = os.environ | {f"SUREFOOT_{k}": v for k, v in given.items()}
    command = [sys.executable, "-m", "surefoot", "agent", "--once", "--json", "--path.procfs", str(proc), *SAVED[2:]]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    collectors = {one["name"]: one for one in json.loads(done.stdout)["collectors"]}
    assert (collectors["disk"]["state"], collectors["disk"]["why"]) == ("failed", "no answer within its deadline")
    assert collectors["host"]["state"] == "ok"


@pytest.mark.parametrize("option", ["procfs", "sysfs", "kmsg"])
def test_a_tree_that_is_not_there_is_an_error_and_not_a_machine_without_anything(option: str, tmp_path: Path) -> None:
    done = called(tmp_path, "--once", f"--path.{option}", "/nope")
    assert done.exit_code == 2 and f"Invalid value for '--path.{option}': there is no /nope." in done.output
