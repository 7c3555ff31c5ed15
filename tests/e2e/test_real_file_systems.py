"""Real file systems that hang, fill and turn read-only, read by the real collector and judged by the real watch: found, and over again.

Each lives in a mount namespace of its own, which ends with its last process. Time is that of the passes: an agent's interval apart.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from alerts.watch import Watch
from pipeline.catalog.metrics import HOST, MOUNT
from pipeline.records import Event

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
INTERVAL = 10.0  # seconds between two passes, as shipped

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")

# What every scenario begins with: a collector that is given passes, each of which is printed with the name of the scene.
COMMON = """
import json, os, subprocess, sys, time
from dataclasses import replace
from datetime import datetime, UTC
from pathlib import Path
from exporters.collector import Site
from exporters.storage.mounts import MountCollector
from pipeline.settings import AgentSettings
where = sys.argv[1]
def collector(**more):
    return MountCollector(Site("node1", probe_timeout=1.7, settings=AgentSettings(probe_paths=(Path(where),), probe_interval=1.0), **more))
def passes(of, scene, number, patience=30, clock=lambda: datetime.now(UTC)):
    # A pass in which this machine stood still is left out and made up for: `right` says what the scene must look like.
    right, seen = SCENES[scene], 0
    until = time.monotonic() + patience
    while seen < number and time.monotonic() < until:
        for reading in of.collect(clock()):
            if reading.identity["mount_point"] == where:
                labels = dict(reading.identity) | dict(reading.attributes)
                print(json.dumps([scene, right(reading.values), reading.values, labels]), flush=True)
                seen += right(reading.values)
"""

FUSE = (
    COMMON
    + """
SCENES = {
    "well": lambda v: v["mount.probe.ok"] == 1 and v["mount.write.ok"] in (1, None),
    "hung": lambda v: v["mount.probe.ok"] == 0 and v["mount.probe.time"] >= 1.5,
    "unwritable": lambda v: v["mount.probe.ok"] == 1 and v["mount.write.ok"] == 0 and v["mount.write.time"] >= 1.5,
    "gone": lambda v: v["mount.probe.ok"] == 0 and v["mount.probe.time"] < 1,
}
subprocess.run(["mount", "-t", "fusectl", "none", "/sys/fs/fuse/connections"], check=False)
server = subprocess.Popen([sys.executable, sys.argv[2], where], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
if server.stdout.readline() != "ready\\n":
    sys.exit("mount: no FUSE here")
def order(word):
    print(word, file=server.stdin, flush=True)
    server.stdout.readline()
try:
    mine = collector()
    passes(mine, "well", 2)
    order("stop")
    passes(mine, "hung", 2)
    order("go")
    passes(mine, "well", 2)
    order("mute")
    passes(mine, "unwritable", 2)
finally:
    minor = next(int(l.split()[2].split(":")[1]) for l in open("/proc/self/mountinfo") if l.split()[4] == where)
    Path(f"/sys/fs/fuse/connections/{minor}/abort").write_text("1")
passes(mine, "gone", 2)
mine.close()
server.stdin.close()
server.wait(20)
"""
)

# Somebody's own FUSE file system: the kernel answers for it where others ask, and only the requests that wait tell of its server.
OWN = (
    COMMON
    + """
from datetime import timedelta
from itertools import count
SCENES = {
    "well": lambda v: v["mount.probe.ok"] == 1 and v["mount.size"] == 0 and v["mount.fuse.waiting"] == 0,
    "waits": lambda v: v["mount.probe.ok"] == 1 and v["mount.size"] == 0 and v["mount.fuse.waiting"] >= 1,
}
READ = "import os; os.setgid(65534); os.setuid(65534); os.listdir('at')"
subprocess.run(["mount", "-t", "fusectl", "none", "/sys/fs/fuse/connections"], check=False)
server = subprocess.Popen([sys.executable, sys.argv[2], where, "65534"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
if server.stdout.readline() != "ready\\n":
    sys.exit("mount: no FUSE here")
began, steps = datetime.now(UTC), count()
mine, clock = collector(), lambda: began + timedelta(seconds=10 * next(steps))
os.chdir(Path(where).parent)
subprocess.run([sys.executable, "-c", READ], check=True)
passes(mine, "well", 2, clock=clock)
print("stop", file=server.stdin, flush=True)
server.stdout.readline()
reader = subprocess.Popen([sys.executable, "-c", READ])
try:
    until = time.monotonic() + 30
    minor = next(int(l.split()[2].split(":")[1]) for l in open("/proc/self/mountinfo") if l.split()[4] == where)
    connection = Path(f"/sys/fs/fuse/connections/{minor}")
    while connection.joinpath("waiting").read_text().strip() == "0" and time.monotonic() < until:
        time.sleep(0.01)
    passes(mine, "waits", 8, clock=clock)
finally:
    connection.joinpath("abort").write_text("1")
    reader.wait(20)
mine.close()
server.stdin.close()
server.wait(20)
"""
)

DISK = (
    COMMON
    + """
from surefoot.drill import disks
SCENES = {
    "well": lambda v: v["mount.write.ok"] == 1,
    "full": lambda v: v["mount.free"] == 0 and v["mount.write.errno"] == 28,
    "read-only": lambda v: v["mount.read_only"] == 1,
}
image = Path(sys.argv[2])
image.write_bytes(b"")
os.truncate(image, 16 << 20)
subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
if subprocess.run(["mount", "-o", "loop", str(image), where], check=False).returncode:
    sys.exit("mount: no loop device here")
mine = collector()
passes(mine, "well", 2)
disks.fill(Path(where))
passes(mine, "full", 2)
disks.empty(Path(where))
passes(mine, "well", 2)
disks.remount(Path(where), read_only=True)
passes(mine, "read-only", 2)
disks.remount(Path(where), read_only=False)
passes(mine, "well", 2)
mine.close()
subprocess.run(["umount", where], check=True)
"""
)


class Rows:
    """A store that holds one mount's readings."""

    def __init__(self) -> None:
        self.readings: list[dict[str, Any]] = []
        self.labels: dict[str, str] = {}

    def add(self, at: datetime, values: dict[str, float | None]) -> None:
        told = json.dumps([values[m.name] for m in MOUNT.metrics])
        self.readings.append({"family": "mount", "device_id": 2, "node": "node1", "ts": at, "readings": told})
        host = json.dumps([None] * len(HOST.metrics))
        self.readings.append({"family": "host", "device_id": 1, "node": "node1", "ts": at, "readings": host})

    def query(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        if "DISTINCT family" in text:
            return [{"family": name} for name in {r["family"] for r in self.readings}]
        if "FROM devices" in text:
            return [{"device_id": 2, "attrs": self.labels}]
        if "AS metric" in text:  # how counters grew before: a mount has none
            return []
        if "min(ts)" in text:
            return [r for r in self.readings if r["family"] == parameters["family"]][:1]
        mine = [r for r in self.readings if r["family"] == parameters["family"]]
        return [r for r in mine if parameters["since"] < r["ts"] <= parameters["until"]]

    def read(self, *_: Any) -> list[Event]:
        return []


def played(script: str, *arguments: str) -> list[tuple[str, bool, dict[str, float | None], dict[str, str]]]:
    """The readings of a scenario, each with the name of its scene and whether it is one that the scene is about."""
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=180, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return [(scene, right, values, labels) for scene, right, values, labels in map(json.loads, done.stdout.splitlines())]


def found(seen: Sequence[tuple[str, bool, dict[str, float | None], dict[str, str]]]) -> list[tuple[str, list[str]]]:
    """The faults that the watch holds for there at the end of each scene."""
    rows = Rows()
    rows.labels = {k: v for k, v in seen[0][3].items() if k != "node"}
    watch = Watch(rows, INTERVAL)  # type: ignore[arg-type]
    ends: list[tuple[str, list[str]]] = []
    for n, (scene, right, values, _) in enumerate(one for one in seen if one[1]):
        at = NOW + timedelta(seconds=n * INTERVAL)
        rows.add(at, values)
        raised = watch.look(at + timedelta(seconds=1), n * INTERVAL, fresh=True, news=False).raised
        faults = sorted({standing.rule.fault.name for standing in raised})
        assert right
        if ends and ends[-1][0] == scene:
            ends.pop()
        ends.append((scene, faults))
    return ends


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_a_real_fuse_file_system_that_stops_answering_is_hung_by_its_second_pass_well_once_it_answers_and_gone_once_it_is_aborted(
    tmp_path: Path,
) -> None:
    seen = played(FUSE, str(tmp_path), str(ROOT / "tests/fakes/fuse_server.py"))
    assert found(seen) == [
        ("well", []),
        ("hung", ["mount_hung"]),
        ("well", []),
        ("unwritable", ["mount_hung"]),  # it says how full it is, and takes no write
        ("gone", ["mount_stale_or_gone"]),
    ]
    (well, *_), (hung, *_) = ([v for s, right, v, _ in seen if s == scene and right] for scene in ("well", "hung"))
    assert (well["mount.size"], well["mount.free"]) == (1_000_000 * 4096, 600_000 * 4096)
    assert well["mount.write.ok"] == 1 and well["mount.write.sync"] is not None, "a small file was written to it"
    assert hung["mount.fuse.waiting"] is not None and hung["mount.fuse.waiting"] >= 1, "the kernel says that requests wait"
    assert hung["mount.write.ok"] is None, "what hangs is not written to as well"
    assert seen[0][3]["type"] == "fuse.surefoot" and seen[0][3]["fuse"].isdigit()


@pytest.mark.skipif(not os.path.exists("/dev/fuse"), reason="needs /dev/fuse")
def test_somebodys_own_fuse_file_system_is_hung_once_his_requests_have_waited_for_a_minute(tmp_path: Path) -> None:
    (tmp_path / "at").mkdir()
    tmp_path.chmod(0o711)
    seen = played(OWN, str(tmp_path / "at"), str(ROOT / "tests/fakes/fuse_server.py"))
    assert found(seen) == [("well", []), ("waits", ["mount_hung"])]
    waited = [v["mount.fuse.stalled"] for scene, right, v, _ in seen if scene == "waits" and right]
    assert waited == [0, 10, 20, 30, 40, 50, 60, 70], "from the first pass that saw them wait"


@pytest.mark.skipif(not shutil.which("mkfs.ext4"), reason="needs mkfs.ext4")
def test_a_real_disk_filled_to_the_last_byte_and_one_that_turns_read_only_are_found_by_their_second_pass_and_over_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "at").mkdir()
    seen = played(DISK, str(tmp_path / "at"), str(tmp_path / "image"))
    assert found(seen) == [
        ("well", []),
        ("full", ["filesystem_full"]),
        ("well", []),
        ("read-only", ["filesystem_read_only"]),
        ("well", []),
    ]
    assert not list((tmp_path / "at").iterdir()), "no probe's file is left in the folder below"
    assert {labels["type"] for *_, labels in seen} == {"ext4"}
