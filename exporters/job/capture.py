"""Evidence of what every local rank is doing, taken before it is stopped: stacks, live cells, flight recorder dumps.

Stacks are read by py-spy from outside and without pausing the rank (`--nonblocking`), so it works on a
stopped one. All ranks at once, and together they have one deadline: evidence never keeps a restart waiting longer.
"""

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from exporters.job.cells import Cell
from exporters.job.identify import Place
from exporters.job.procfs import ZOMBIE, read_stat
from exporters.job.tree import Tree
from pipeline.clock import monotonic

TEXT_LIMIT: Final = 60_000  # bytes of text that an event carries
STACKS, LIVE, FLIGHT_RECORDER = "stacks", "live", "flight_recorder"
_LOOK: Final = 0.02  # seconds between two looks at whether py-spy is done


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing learnt of one rank. `text` is cut to TEXT_LIMIT; a dump (binary) is base64 where it fits."""

    rank: int
    pid: int
    kind: str
    text: str = ""
    path: str = ""
    note: str = ""  # what a person should know of it


@dataclass(slots=True)
class _Dump:
    """A running py-spy."""

    place: Place
    process: subprocess.Popen[bytes]
    output: int  # a memory file: however long the text is, py-spy never waits for us


def find_py_spy() -> str | None:
    """The py-spy beside our Python, else on the path."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")


def live(cells: Sequence[Cell]) -> list[Evidence]:
    """The live cells as evidence."""
    return [
        Evidence(
            c.rank,
            c.pid,
            LIVE,
            json.dumps({"step": c.step, "completed": c.completed, "phase": c.phase, "since_ns": c.since, "collective": c.collective}),
            str(c.path),
        )
        for c in cells
    ]


def flight_recorder(places: Sequence[Place], since: float) -> list[Evidence]:
    """The flight recorder files that ranks wrote after `since` (seconds since 1970). Their content is not looked into."""
    found = []
    for place in places:
        path = Path(f"{place.dump_prefix}{place.rank}")
        try:
            info = path.stat() if place.dump_prefix else None
            if info is None or info.st_mtime < since:
                continue
            fits = info.st_size <= TEXT_LIMIT * 3 // 4
            text = base64.b64encode(path.read_bytes()).decode("ascii")[:TEXT_LIMIT] if fits else ""
        except OSError:  # none was written
            continue
        note = "" if fits else f"flight recorder dump of rank {place.rank}: {info.st_size} bytes, left in its file"
        found.append(Evidence(place.rank, place.pid, FLIGHT_RECORDER, text, str(path), note))
    return found


def stacks(places: Sequence[Place], tree: Tree, *, py_spy: str | None, limit: float, turn: Callable[[float], None]) -> list[Evidence]:
    """The stacks of all living ranks of `places`, within `limit` seconds; meanwhile `turn` goes on with other work."""
    if py_spy is None:
        return []
    deadline = monotonic() + limit
    dumps = [dump for place in places if _alive(place) and (dump := _start(py_spy, place, tree))]
    while any(d.process.poll() is None for d in dumps) and monotonic() < deadline:
        turn(_LOOK)
    return [_finish(dump, tree) for dump in dumps]


def _alive(place: Place) -> bool:
    stat = read_stat(place.pid)
    return stat is not None and stat.start == place.start and stat.state not in ZOMBIE


def _start(py_spy: str, place: Place, tree: Tree) -> _Dump | None:
    command = [py_spy, "dump", "--nonblocking", "--pid", str(place.pid)]
    try:
        output = os.memfd_create("stacks")
    except OSError:  # no descriptor to be had
        return None
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, process_group=0)
    except OSError:  # no process to be had: a stop goes on without stacks
        os.close(output)
        return None
    tree.disown(process.pid)
    return _Dump(place, process, output)


def _finish(dump: _Dump, tree: Tree) -> Evidence:
    late = dump.process.poll() is None
    if late:
        dump.process.kill()
    dump.process.wait()
    tree.forget(dump.process.pid)
    with os.fdopen(dump.output, "rb") as f:
        f.seek(0)
        text = f.read(TEXT_LIMIT).decode("utf-8", "ignore")
    note = ""
    if late:
        note = f"stacks of rank {dump.place.rank}: py-spy was not done in time"
    elif dump.process.returncode != 0:
        note = f"stacks of rank {dump.place.rank}: py-spy failed ({text.strip().splitlines()[-1] if text.strip() else 'no word'})"
    return Evidence(dump.place.rank, dump.place.pid, STACKS, text, note=note)
