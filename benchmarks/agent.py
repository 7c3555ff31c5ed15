"""Goal 8: what the agent's readings cost a node, from the kernel's files to both encodings (Prometheus text and OTLP).

Against prometheus_client: 240 series of 30 disks out of /proc/diskstats, by the same reader; both make the page, ours the
OTLP message too. Against Debian's prometheus-node-exporter: the same disks out of the same file; those disks against all that it
shows of this machine as it is shipped; and then each with all that it observes of this machine, ours with its probing child. The peer
is scraped over HTTP, and its CPU is the kernel's figure, which holds its answering over HTTP too, where ours is of making page and
message. Figures are CPU time a series, and of everything also that of one whole pass against one whole scrape: where a machine has few
devices our catalogue has few series, and a figure a series says little of what users pay. Memory is that of a process of each kind; one
of ours collects 10,000 times.
"""

import os
import resource
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from benchmarks.harness import Goal, Result, compare, verdict
from exporters.collector import Collector, Reading, Site, Table
from exporters.encode import Arranger, PageText, accept
from exporters.registry import COLLECTORS
from exporters.sending.metrics import MetricMessages
from exporters.sources import procfs
from exporters.sources.procfs import Disks
from pipeline.catalog.metrics import DISK
from pipeline.clock import utcnow

DISKS: Final = 30  # of eight series each
SCRAPES: Final = 40  # of ours to a figure
PEER_SCRAPES: Final = 400  # of node_exporter's, whose time the kernel tells in ticks of 10 ms
ROUNDS: Final = 10_000
METRICS: Final = "disk.reads disk.read disk.read.time disk.writes disk.written disk.write.time disk.io.time disk.in_flight".split()
FLAT: Final = 1.05  # what 10,000 collections may add to the memory after the first 500
EXPORTER: Final = "prometheus-node-exporter"
_TICK: Final = 1e9 / os.sysconf("SC_CLK_TCK")


def run() -> Iterator[Result]:
    """A line a peer, and one on memory."""
    with TemporaryDirectory(prefix="surefoot-bench-") as folder:
        yield _against_client(Path(folder))
        yield _memory(Path(folder))
        yield from _against_exporter(Path(folder))


# --- against prometheus_client -----------------------------------------------------------------


def _against_client(proc: Path) -> Result:
    made = _proc(proc)
    series = _passes([Traffic(made)])()[1]
    ours = _passes([Traffic(made)])
    peer = _client(proc)
    what = f"CPU a series of {series}, read, text and OTLP : prometheus_client, read, text"
    return compare("agent.client", what, lambda: _cpu(ours), lambda: _cpu(peer), Goal(0.25, "<="), _us)


class Traffic:
    """What a collector of disks' traffic does: the file's figures as readings, under the catalogue's names."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._boot = procfs.cpu(site.proc, site.ticks).boot

    def collect(self, now: datetime) -> Iterator[Table]:
        """All disks."""
        disks = procfs.disks(self._site.proc)
        columns = dict(zip(METRICS, _figures(disks), strict=True))
        yield Table(DISK, [(self._site.node, name) for name in disks.names], columns, since=self._boot)


def _figures(disks: Disks) -> Sequence[Sequence[float | int | None]]:
    reads, writes = (disks.reads, disks.read_bytes, disks.read_seconds), (disks.writes, disks.written_bytes, disks.write_seconds)
    return (*reads, *writes, disks.io_seconds, disks.in_flight)


def _proc(folder: Path) -> Site:
    """A machine with 30 disks whose counters stand still."""
    (folder / "stat").write_text("cpu  1 1 1 1 1 1 1 1 0 0\nbtime 1796000000\n")
    lines = [f"   8 {n} sd{_letters(n)} {n}11 2 {n}3000 40 {n}55 6 {n}7000 80 {n % 3} 100 110\n" for n in range(DISKS)]
    (folder / "diskstats").write_text("".join(lines))
    return Site("node1", proc=folder)


def _letters(n: int) -> str:
    return chr(97 + n // 26) * (n >= 26) + chr(97 + n % 26)


def _passes(collectors: Sequence[Collector]) -> Callable[[], tuple[int, int]]:
    """Makes a pass of the collectors, all encodings included; gives the bytes made and the series."""
    known: list[int] = []
    encoders = [(PageText(arranger), MetricMessages(arranger)) for arranger in (Arranger() for _ in collectors)]

    def one() -> tuple[int, int]:
        size = series = 0
        for collector, (page, messages) in zip(collectors, encoders, strict=True):
            now = utcnow()
            readings, _ = accept(seen for seen in collector.collect(now) if isinstance(seen, Reading | Table))
            size += len(page.of(readings).encode()) + sum(map(len, messages.encode(readings, now)))
            series += 0 if known else sum(len(reading.numbers) for reading in readings)
        known[:] = known or [series]  # of the machine as it stands
        return size, known[0]

    return one


def _client(proc: Path) -> Callable[[], tuple[int, int]]:
    """The same series by the same reader, as gauges of prometheus_client."""
    from prometheus_client import CollectorRegistry, Gauge, generate_latest

    registry = CollectorRegistry()
    gauges = [Gauge(f"surefoot_{name.replace('.', '_')}", "What it is", ["node", "disk"], registry=registry) for name in METRICS]

    def one() -> tuple[int, int]:
        disks = procfs.disks(proc)
        for gauge, column in zip(gauges, _figures(disks), strict=True):
            for disk, figure in zip(disks.names, column, strict=True):
                gauge.labels("node1", disk).set(figure or 0)
        return len(generate_latest(registry)), len(disks.names) * len(gauges)

    return one


# --- against node_exporter ---------------------------------------------------------------------


def _against_exporter(proc: Path) -> Iterator[Result]:
    program = shutil.which(EXPORTER)
    if program is None:
        yield Result.skip("agent.node_exporter", f"{EXPORTER} is not here (Debian's package of that name)")
        return
    disks: list[Collector] = [Traffic(_proc(proc))]
    only = ["--collector.disable-defaults", "--collector.diskstats", f"--path.procfs={proc}", "--web.disable-exporter-metrics"]
    with _exporter([program, *only]) as peer:
        yield _compared("agent.node_exporter", "of the same disks", disks, peer, program)
        yield _floor(proc, peer, program)
    everything = [entry.make(Site("node1")) for entry in COLLECTORS]
    with _exporter([program]) as peer:
        yield _compared("agent.shipped", "of those disks, against all that it shows as it is shipped", disks, peer, program)
        yield _compared("agent.machine", "of this machine", everything, peer, program)
        yield _whole(everything, peer, program)
    for collector in everything:
        if callable(close := getattr(collector, "close", None)):
            close()


def _compared(name: str, where: str, collectors: Sequence[Collector], exporter: "_Exporter", program: str) -> Result:
    ours = _passes(collectors)

    mine, theirs = ours()[1], exporter.scrape()
    what = f"CPU a series, {mine} {where}, text and OTLP : {EXPORTER} {_version(program)}, text, {theirs}"
    found = compare(name, what, lambda: _cpu(ours), lambda: _of_series(exporter), Goal(0.25, "<="), _us)
    memory = f"memory {_mib(float(_spawned(Path('/proc'), 20)[-1]))} : {_mib(float(_resident(exporter.pid)))}"
    return replace(found, what=f"{what}; {memory}")


def _floor(proc: Path, exporter: "_Exporter", program: str) -> Result:
    """What Python itself needs: the same file read and written as text, nothing checked, no labels made, no OTLP."""
    names = [f"sd{_letters(n)}" for n in range(DISKS)]
    heads = {disk: [f'surefoot_{metric}{{node="node1",disk="{disk}"}} ' for metric in METRICS] for disk in names}

    def ours() -> tuple[int, int]:
        lines = []
        for words in map(str.split, (proc / "diskstats").read_bytes().decode().splitlines()):
            n = [int(word) for word in words[3:13]]
            figures = (n[0], n[2] * 512, n[3] / 1e3, n[4], n[6] * 512, n[7] / 1e3, n[9] / 1e3, n[8])
            lines += [f"{head}{figure!r}\n" for head, figure in zip(heads[words[2]], figures, strict=True)]
        return len("".join(lines).encode()), len(lines)

    what = f"CPU a series of bare Python, the same disks read and formatted, no checks, no OTLP : {EXPORTER} {_version(program)}, text"
    return compare("agent.floor", what, lambda: _cpu(ours), lambda: _of_series(exporter), Goal(0.25, "<="), _us)


def _whole(collectors: Sequence[Collector], exporter: "_Exporter", program: str) -> Result:
    ours = _passes(collectors)

    def mine() -> float:
        return _spent(_own, lambda: ours()[1], SCRAPES)[0] / SCRAPES

    def peer() -> float:
        return _spent(lambda: _cpu_of(exporter.pid), exporter.scrape, PEER_SCRAPES)[0] / PEER_SCRAPES

    what = f"CPU of a pass of all collectors, text and OTLP : of a scrape of {EXPORTER} {_version(program)}"
    return compare("agent.pass", what, mine, peer, Goal(1, "<="), _us)


def _of_series(exporter: "_Exporter") -> float:
    spent, series = _spent(lambda: _cpu_of(exporter.pid), exporter.scrape, PEER_SCRAPES)
    return spent / series


class _Exporter(NamedTuple):
    """A running one; `scrape` gives how many series came."""

    scrape: Callable[[], int]
    pid: int


@contextmanager
def _exporter(command: Sequence[str]) -> Iterator[_Exporter]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    process = subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def scrape() -> int:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
            return sum(not line.startswith(b"#") for line in answer.read().splitlines())

    try:
        end = time.monotonic() + 30
        while True:
            try:
                scrape()
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        yield _Exporter(scrape, process.pid)
    finally:
        process.terminate()
        process.wait(30)


def _version(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    words = (done.stdout + done.stderr).split()
    return words[words.index("version") + 1] if "version" in words[:-1] else "of an unknown version"


# --- memory ------------------------------------------------------------------------------------

_CHILD: Final = """
import sys
from pathlib import Path
from benchmarks.agent import collected
for kib in collected(Path(sys.argv[1]), int(sys.argv[2])):
    print(kib, flush=True)
"""


def collected(proc: Path, rounds: int) -> Iterator[int]:
    """The resident KiB of this process after each 20th part of `rounds` collections."""
    site = Site("node1") if proc == Path("/proc") else Site("node1", proc=proc)
    one = _passes([entry.make(site) for entry in COLLECTORS] if site.proc == Path("/proc") else [Traffic(site)])
    for n in range(1, rounds + 1):
        one()
        if n % max(1, rounds // 20) == 0:
            yield int(_resident(os.getpid()))


def _memory(proc: Path) -> Result:
    sizes = [float(kib) for kib in _spawned(proc, ROUNDS)]
    first, last = sizes[0], sizes[-1]
    ratio, goal = last / first, Goal(FLAT, "<=")
    what = f"memory after {ROUNDS:,} collections : after {ROUNDS // 20}"
    return Result("agent.flat", what, verdict(ratio, ratio, ratio, goal), str(goal), _mib(last), _mib(first), ratio, ratio, ratio)


def _spawned(proc: Path, rounds: int) -> list[str]:
    command = [sys.executable, "-c", _CHILD, str(proc), str(rounds)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _resident(pid: int) -> str:
    """KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("VmRSS:"))


def _mib(kib: float) -> str:
    return f"{kib / 1024:.1f}MiB"


# --- CPU ---------------------------------------------------------------------------------------


def _cpu(one: Callable[[], tuple[int, int]]) -> float:
    """Nanoseconds of CPU a series, of this process and its children, over SCRAPES passes."""
    spent, series = _spent(_own, lambda: one()[1], SCRAPES)
    return spent / series


def _spent(cpu: Callable[[], float], one: Callable[[], int], times: int) -> tuple[float, int]:
    """Nanoseconds of `cpu` that `one`, which gives how many series it made, takes `times` over; and the series of all of them."""
    began = cpu()
    series = sum(one() for _ in range(times))
    return cpu() - began, series


def _own() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return time.process_time_ns() + (ended.ru_utime + ended.ru_stime) * 1e9 + sum(_cpu_of(int(pid)) for pid in children)


def _cpu_of(pid: int) -> float:
    """Nanoseconds that the process has run: of all its threads, those that ended too, in ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def _us(figure: float) -> str:
    return f"{figure / 1e3:.2f}us"
