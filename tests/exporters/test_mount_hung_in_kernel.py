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
