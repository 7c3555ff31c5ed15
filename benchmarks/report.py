"""docs/benchmark.md: one row a bench; a bench that was not run again keeps its row."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Final

from benchmarks.harness import Result

PACKAGES: Final = ("chdb", "clickhouse-connect", "pyarrow", "opentelemetry-sdk", "torch")
_COLUMNS: Final = ("bench", "what : against", "ours", "peer", "ratio", "interval", "goal", "verdict", "measured")
_ROW: Final = re.compile(r"^\| ([a-z0-9.-]+) \|")
_HEAD: Final = """# Benchmarks

Written by `make bench` (`make bench NAME=hook` for one). Each ratio is the median over interleaved pairs of ours and a peer
measured in the same run; the interval holds the true median with about 95 %. A ratio whose interval is wider than its
distance to the goal is *not-resolved*. Absolute figures move with the machine: trust the ratios.
"""


def update(path: Path, results: Sequence[Result], now: datetime) -> None:
    """Write the results into the file at `path`, beside those that it has of other benches."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page(old, results, machine(), now), encoding="utf-8")


def page(old: str, results: Sequence[Result], where: str, now: datetime) -> str:
    """The page after `results`, measured on `where`. Pure."""
    rows: dict[str, str] = {found[1]: line for line in old.splitlines() if (found := _ROW.match(line)) and found[1] != "bench"}
    rows |= {r.name: _row(r, now) for r in results}
    header = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}"
    return f"{_HEAD}\nLast run: {now:%Y-%m-%d %H:%M} UTC, {where}.\n\n{header}\n" + "".join(f"{rows[name]}\n" for name in sorted(rows))


def _row(result: Result, now: datetime) -> str:
    measured = f"{now:%Y-%m-%d}"
    if result.verdict == "skipped":
        return f"| {result.name} | | | | | | | skipped: {result.why} | {measured} |"
    interval = f"{result.low:.3g} to {result.high:.3g}"
    cells = (result.name, result.what, result.ours, result.peer, f"{result.ratio:.3g}", interval, result.goal, result.verdict, measured)
    return f"| {' | '.join(cells)} |"


def machine() -> str:
    """The processor, its cores, Python and the packages that matter."""
    versions = _versions()
    return ", ".join([f"{_processor()}", f"Python {platform.python_version()}", *(f"{name} {versions[name]}" for name in versions)])


def _processor() -> str:
    cores = f"{os.cpu_count()} cores"
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return f"{platform.machine()}, {cores}"
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return f"{found[1] if found else platform.machine()}, {cores}"


def _versions() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
