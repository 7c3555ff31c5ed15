"""A file system whose server never answers, in a mount namespace of its own: the kernel's hang, not a simulated one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

# A FUSE connection that nobody serves: statfs waits for it until its file is closed, which ends the connection.
SCRIPT = """
import ctypes, json, os, sys, time
from exporters.sources.storage.mounts import Prober, usages
fuse = os.open("/dev/fuse", os.O_RDWR)
where = sys.argv[1]
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"surefoot", where.encode(), b"fuse", 0, options):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
prober = Prober(usages(), 0.3)
seen, until = [], time.monotonic() + 40
while sum(s["/"].ok is True for s in seen) < 2 and time.monotonic() < until:  # a machine that pauses is looked at again
    seen.append(prober.probe(["/", where]))
began = time.monotonic()
prober.close()
closed = time.monotonic() - began
os.close(fuse)
print(json.dumps([[s["/"].ok, s[where].ok, s[where].seconds] for s in seen] + [closed]))
"""

# The collector as the agent runs it, over many passes: what its child process costs, and that it is gone with the agent.
PASSES = """
import ctypes, json, os, sys, time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from exporters.collector import Site
from exporters.passes import Runner, close
from exporters.storage.mounts import MountCollector
fuse = os.open("/dev/fuse", os.O_RDWR)
where = sys.argv[1]
options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
if ctypes.CDLL(None, use_errno=True).mount(b"surefoot", where.encode(), b"fuse", 0, options):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
def children():
    return [int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
def state(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""
runner = Runner("mount", partial(MountCollector, Site("n", probe_timeout=0.1)), 1.0, 30.0)
seen, until = [], time.monotonic() + 40
while len(seen) < 60 and time.monotonic() < until:
    runner.begin(datetime.now(UTC))
    while runner.busy:
        time.sleep(0.002)
    told = {dict(r.labels)["mount_point"]: {m.name: v for m, v in r.values} for r in runner.take().readings}
    threads = sum(len(list(Path(f"/proc/{child}/task").iterdir())) for child in children())
    seen.append([told[where].get("mount.probe.ok"), len(children()), threads - len(told)])
mine = children()
close([runner], 10.0)
os.close(fuse)
end = time.monotonic() + 10
while any(state(pid) not in ("", "Z") for pid in mine) and time.monotonic() < end:
    time.sleep(0.01)
print(json.dumps([seen, [state(pid) for pid in mine], runner._thread.is_alive()]))
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not shutil.which("unshare"), reason="needs root, /dev/fuse and unshare"
)
def test_a_file_system_that_hangs_in_the_kernel_is_not_ok_and_neither_slows_the_others_nor_the_end(tmp_path: Path) -> None:
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", SCRIPT, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=90, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    *seen, closed = json.loads(done.stdout)
    assert [root for root, *_ in seen].count(True) == 2
    assert {hung for _, hung, _ in seen} == {False}
    times = [seconds for *_, seconds in seen]
    assert 0.3 <= times[0] and times == sorted(set(times)), "they grow"
    assert closed < 15, "it does not wait for the process that hangs"


@pytest.mark.skipif(
    os.geteuid() != 0 or not os.path.exists("/dev/fuse") or not shutil.which("unshare"), reason="needs root, /dev/fuse and unshare"
)
def test_sixty_passes_over_a_hung_file_system_cost_one_stuck_thread_of_one_process_which_ends_with_the_agent(tmp_path: Path) -> None:
    # C25: one stuck thread a scrape came to a load of 811.
    command = ["unshare", "-m", "--propagation", "private", sys.executable, "-c", PASSES, str(tmp_path)]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=90, check=False)
    if "mount:" in done.stderr or "unshare:" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    seen, left, alive = json.loads(done.stdout)
    assert len(seen) == 60 and {ok for ok, _, _ in seen} == {0}
    assert {processes for _, processes, _ in seen} == {1}, "folders to write to are none here"
    assert max(more for *_, more in seen) <= 2, "a thread for each mount, the hung one's among them, one that reads and one that writes"
    assert set(left) <= {"", "Z"} and not alive
