"""Passes of the GPU collector against the fake library, as a program: LD_LIBRARY_PATH names its folder, FAKE_NVML its scenario.

Reads a JSON text a line, {"scenario": text, "ahead": seconds, "kept": {...}}, makes a pass, and writes a JSON text a line:
what the pass gave. A "kept" makes a new collector, as the next agent would.
"""

import json
import os
import sys
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

from exporters.collector import RankProcess, Reading, Site
from exporters.encode import accept
from exporters.gpu.vendor import VendorGpus
from exporters.sources.gpu.vendors import VENDORS

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Clock:
    """Monotonic seconds, that orders may put forward."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.ahead


def main() -> None:
    clock = Clock()
    collector = None
    for line in sys.stdin:
        order = json.loads(line)
        if "scenario" in order:
            fresh = Path(os.environ["FAKE_NVML"] + ".fresh")
            fresh.write_text(order["scenario"])
            fresh.replace(os.environ["FAKE_NVML"])
        clock.ahead += order.get("ahead", 0.0)
        if collector is None or "kept" in order:
            site = Site(
                "node1",
                Path(os.environ["FAKE_PROC"]),
                sys=Path(os.environ["FAKE_SYS"]),
                probe_timeout=order.get("timeout", 20.0),
                ranks=lambda: (RankProcess("run1", 0, 4711, 1), RankProcess("run1", 1, 4712, 2)),
                kept=order.get("kept", {}),
            )
            collector = VendorGpus(site, VENDORS[0], clock)
        sys.stdout.write(json.dumps(one_pass(collector)) + "\n")
        sys.stdout.flush()
    os._exit(0)  # what hangs is left


def one_pass(collector: VendorGpus) -> dict[str, object]:
    readings, events, error = [], [], ""
    try:
        for one in collector.collect(AT):
            (readings if isinstance(one, Reading) else events).append(one)
    except OSError as e:
        error = str(e)
    accepted, rejected = accept(readings)
    return {
        "readings": [{"family": a.family.name, "labels": dict(a.labels), "values": {m.name: v for m, v in a.values}} for a in accepted],
        "events": [{"id": e.id, "kind": e.kind, "device": e.device, "attrs": e.attrs} for e in events],
        "rejected": rejected,
        "error": error,
        "kept": dict(collector.kept()),
        "threads": sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("nvidia")),
    }


main()
