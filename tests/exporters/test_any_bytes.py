"""Whatever stands in the files that collectors read, they give values or counted rejections, or say with an OSError that they cannot read.

The parsers that have a strategy of their own are tried where their other tests stand; here all collectors are, on the fixture machine with
a few of its files damaged, and what had no such test. One strategy: bytes at random, and real ones that were cut, doubled or overwritten.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from ctypes import CDLL
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exporters.collector import Collector, Reading, Site, Table
from exporters.encode import accept
from exporters.gpu.collector import GpuCollector
from exporters.gpu.vendor import VendorGpus
from exporters.registry import COLLECTORS, Entry
from exporters.sources import attributes, cgroups, process
from exporters.sources.command import output
from exporters.sources.gpu.vendors import VENDORS
from exporters.sources.scheduler import slurm
from exporters.sources.storage import blocks, kubelet
from exporters.sources.storage.mounts import ChildProbes
from exporters.sources.storage.probes import Smart, ThreadProbes, Usage
from pipeline.clock import utcnow
from pipeline.settings import AgentSettings, ScrapeSettings, SlurmSettings

FIXTURES = Path(__file__).parents[1] / "fixtures"
MANY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
PUNCTUATION = st.sampled_from([b"", b"\0", b"\n", b" ", b"-1", b"18446744073709551616", b"nan", b"\xff\xfe", b"0x", b":", b"\xc2\xb2"])
WOUND = st.tuples(st.integers(0, 400), st.integers(0, 60), st.one_of(PUNCTUATION, st.binary(max_size=12)))
JUNK = st.one_of(st.binary(max_size=80), st.lists(WOUND, min_size=1, max_size=3))


def damaged(content: bytes, junk: bytes | list[tuple[int, int, bytes]]) -> bytes:
    """Bytes in the place of `content`, or `content` with wounds: from where, how many bytes are gone, what stands there."""
    if isinstance(junk, bytes):
        return junk
    for start, gone, instead in junk:
        content = content[:start] + instead + content[start + gone :]
    return content


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(FIXTURES, tmp_path_factory.mktemp("machine") / "fixtures", symlinks=True))


@pytest.fixture
def gpu_library(fake_nvml: Path, machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CDLL(str(fake_nvml / "libnvidia-ml.so.1"))
    monkeypatch.setenv("FAKE_NVML", str(machine / "nvml_two_gpus.txt"))


def site_of(root: Path) -> Site:
    pages = [path.name for path in (root / "pages").iterdir()]
    return Site(
        "node1",
        root / "proc",
        root / "shm",
        ticks=100.0,
        usage=lambda _: Usage(1000, 10, 5, 2),
        probes=lambda: ThreadProbes(lambda _: Usage(1000, 10, 5, 2)),
        writes=lambda: ThreadProbes(lambda _: (_ for _ in ()).throw(OSError(28, "full"))),
        smarts=lambda: ThreadProbes(lambda _: Smart((root / "nvme/smart-log.hex").read_bytes().decode("latin-1"))),
        kubelet=lambda _: (root / "kubelet/summary.json").read_bytes().decode("utf-8", "replace"),
        probe_timeout=30.0,
        sys=root / "sys",
        cgroups=root / "sys/fs/cgroup",
        kmsg=root / "kmsg",
        clock_offset=lambda: 0.25,
        ethtool=lambda _: {},
        kept={"plog.looked": 1},
        settings=AgentSettings(
            scrape=tuple(ScrapeSettings(name=name, url=(root / "pages" / name).as_uri()) for name in pages),
            ascend_logs=root / "ascend/log",
            schedulers=("slurm-cluster",),
            slurm=SlurmSettings(scontrol=str(root / "bin/scontrol")),
        ),
    )


def given_up(collector: Collector) -> None:
    """Two passes: each gives what can be accepted or counted, or an OSError."""
    for _ in range(2):
        with suppress(OSError):
            observed = list(collector.collect(utcnow()))
            told = [one for one in observed if isinstance(one, Reading | Table)]
            there = sum(
                value is not None
                for one in told
                for values in ([one.values.values()] if isinstance(one, Reading) else one.columns.values())
                for value in values
            )
            accepted, rejected = accept(told)
            assert sum(len(one.numbers) for one in accepted) + rejected == there


READS = {  # what of the machine each collector looks at
    "host": ("proc/*", "proc/pressure/*", "proc/self/*"),
    "mount": ("proc/self/mountinfo", "sys/fs/fuse/**/*", "sys/block/**/rotational"),
    "nfs": ("proc/self/mount*", "proc/net/rpc/*"),
    "lustre": ("sys/fs/lustre/**/*", "sys/kernel/debug/lustre/**/*", "proc/fs/lustre/**/*"),
    "volume": ("kubelet/*",),
    "disk": ("proc/diskstats", "proc/stat", "sys/block/**/*"),
    "disk_health": ("nvme/*", "sys/class/nvme/**/*"),
    "cgroup": ("proc/[0-9]*/*", "proc/self/*", "sys/fs/cgroup/**/*"),
    "gpu": ("nvml_two_gpus.txt",),
    "rdma_port": ("sys/class/infiniband/**/*",),
    "netdev": ("sys/class/net/**/*", "sys/class/infiniband/**/ndevs/*"),
    "scrape": ("pages/*",),
    "scheduler": ("slurm/*",),
    "ascend_logs": ("ascend/**/*.log",),
    "kernel": ("kmsg", "proc/sys/kernel/random/*", "proc/uptime"),
    "pstore": ("proc/sys/kernel/random/*",),
    "oom": ("proc/vmstat", "proc/[0-9]*/*", "sys/fs/cgroup/**/*"),
}
FILED = [entry for entry in COLLECTORS if entry.name not in ("redfish", "clock", "quota")]  # those ask over HTTP, nobody, and the kernel


@pytest.mark.parametrize("entry", FILED, ids=lambda entry: entry.name)
@MANY
@given(wounds=st.lists(st.tuples(st.integers(0, 10**6), JUNK), min_size=1, max_size=3))
def test_a_collector_of_a_damaged_machine_gives_values_or_counted_rejections_or_says_that_it_cannot_read(
    entry: Entry, machine: Path, gpu_library: None, wounds: list[tuple[int, bytes | list[tuple[int, int, bytes]]]]
) -> None:
    files = sorted({path for glob in READS[entry.name] for path in machine.glob(glob) if path.is_file()})
    spoilt: dict[Path, bytes] = {}
    try:
        for number, junk in wounds:
            path = files[number % len(files)]
            spoilt.setdefault(path, path.read_bytes())
            path.write_bytes(damaged(path.read_bytes(), junk))
        collector = entry.make(site_of(machine))
        given_up(collector)
        if close := getattr(collector, "close", None):
            close()
    finally:
        for path, content in spoilt.items():
            path.write_bytes(content)


@pytest.mark.parametrize("vendor", ["amd", "huawei"])
@MANY
@given(number=st.integers(0, 10**6), junk=JUNK)
def test_accelerators_of_other_makers_are_read_alike(
    vendor: str, machine: Path, monkeypatch: pytest.MonkeyPatch, number: int, junk: bytes | list[tuple[int, int, bytes]]
) -> None:
    files = [path for path in (machine / "amdgpu").rglob("*") if path.is_file()] if vendor == "amd" else [machine / "npu_smi_info.txt"]
    path = sorted(files)[number % len(files)]
    before = path.read_bytes()
    tool = machine / "tools/npu-smi"
    tool.parent.mkdir(exist_ok=True)
    tool.write_text(f"#!/bin/sh\nexec cat {machine}/npu_smi_info.txt\n")
    tool.chmod(0o755)
    try:
        path.write_bytes(damaged(before, junk))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
            given_up(VendorGpus(replace(site_of(machine), sys=machine / "amdgpu"), next(one for one in VENDORS if one.name == vendor)))
    finally:
        path.write_bytes(before)


NUMBER = st.one_of(st.integers(0, 2**64).map(str), st.integers(-(2**31), 2**31).map(str), st.sampled_from(["nan", "1e308", "-1", "", "x"]))
ANSWER = st.one_of(NUMBER, st.lists(NUMBER, max_size=4).map(" ".join), st.integers(1, 30).map("!{}".format), st.just("a:b 1:2 99:"))
CALLS = sorted({line.partition(" ")[0].partition(".")[2] for line in (FIXTURES / "nvml_two_gpus.txt").read_text().splitlines()} - {""})
WHO = ("nvmlDeviceGetUUID", "nvmlDeviceGetHandleByIndex_v2")


@MANY
@given(answers=st.dictionaries(st.sampled_from(CALLS), ANSWER, min_size=1, max_size=8))
def test_whatever_the_driver_answers_is_a_value_or_a_counted_rejection(machine: Path, gpu_library: None, answers: dict[str, str]) -> None:
    scenario = machine / "nvml_two_gpus.txt"
    before = scenario.read_text()
    kept = [line for line in before.splitlines() if line.partition(" ")[0].partition(".")[2] not in answers.keys() - {*WHO}]
    try:
        scenario.write_text("\n".join([*kept, *(f"*.{call} {said}" for call, said in answers.items() if call not in WHO)]) + "\n")
        given_up(GpuCollector(site_of(machine)))
    finally:
        scenario.write_text(before)


# --- parsers of a process, a group, a word -------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "memory").mkdir()
    yield tmp_path


STATUS = b"Name:\tx\nTgid:\t7\nPPid:\t1\nUid:\t0\t0\t0\t0\n"
GROUPS = b"12:memory:/a/b\n0::/kubepods.slice/x\n"
EVENTS = b"low 0\nhigh 0\noom 1\noom_kill 3\n"
INFO = b"36 35 0:31 /a /sys/fs/cgroup rw - cgroup2 cgroup rw\n37 35 0:32 / /memory rw - cgroup cgroup rw,memory\n"


@MANY
@given(junk=JUNK)
def test_a_process_that_tells_anything_of_itself_has_owners_ancestors_and_a_group_or_none(folder: Path, junk: bytes) -> None:
    proc = folder / "proc"
    (proc / "7/status").write_bytes(damaged(STATUS, junk))
    (proc / "7/cgroup").write_bytes(damaged(GROUPS, junk))
    (proc / "self/mountinfo").write_bytes(damaged(INFO, junk))
    for name in ("memory.events", "memory.oom_control", "memory.current", "memory.max", "memory.usage_in_bytes", "memory.limit_in_bytes"):
        (folder / "memory" / name).write_bytes(damaged(EVENTS, junk))
    assert all(user >= 0 for user in process.owners(proc, 7))
    assert len(process.lineage(proc, 7)) <= process.MOST_ANCESTORS
    cgroups.pod_of(proc, 7)
    group = cgroups.group_of(proc, folder, 7)
    for one in (group, cgroups.Group("/", folder / "memory", 1), cgroups.Group("/", folder / "memory", 2)):
        memory = cgroups.memory(one) if one else None
        assert memory is None or all(value is None or value >= 0 for value in (memory.oom_kills, memory.used, memory.limit))


@given(st.one_of(st.text(max_size=60), st.from_regex(r"0?x?[0-9a-fA-F]{0,45}", fullmatch=True)))
def test_any_word_is_a_whole_number_of_64_bits_or_none(word: str) -> None:
    value = attributes.whole(word)
    assert value is None or 0 <= value < 1 << 64


@given(st.one_of(st.text(max_size=40), st.from_regex(r"(sd|nvme|loop|md|vd)[a-z0-9]{0,9}(p\d+)?", fullmatch=True)))
def test_any_name_is_a_disk_or_part_of_one(name: str) -> None:
    assert name.startswith(blocks.whole(name))


@given(st.text())
def test_any_list_of_pids_names_jobs_by_their_numbers(text: str) -> None:
    assert all(job.isdigit() for job in slurm.local_jobs(text))


@given(st.binary(max_size=200).map(lambda raw: raw.decode("utf-8", "replace")))
def test_any_answer_of_the_kubelet_gives_volumes_or_is_refused_in_words(text: str) -> None:
    with suppress(OSError):
        kubelet.volumes(text)


# --- what other programs print -------------------------------------------------------------------


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=300), code=st.integers(0, 255))
def test_whatever_a_program_prints_is_text_or_an_error_of_one_line(tmp_path: Path, raw: bytes, code: int) -> None:
    (tmp_path / "said").write_bytes(raw)
    said: Callable[[], str] = lambda: output(("sh", "-c", f"cat {tmp_path}/said; exit {code}"), 30.0, 1 << 20)  # noqa: E731
    if code:
        with pytest.raises(OSError, match=r"^sh ended with \d+: [^\n]+$"):
            said()
    else:
        assert isinstance(said(), str)


ODD = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"")),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=9)).map(
        lambda told: json.dumps(told).encode()
    ),
    st.integers(1, 3000).map(lambda depth: b"[" * depth),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(ODD, max_size=4))
def test_whatever_the_probing_process_writes_is_an_answer_or_passed_over(tmp_path: Path, lines: list[bytes]) -> None:
    (tmp_path / "said").write_bytes(b"\n".join([*lines, b'["/data", 0.5, "", 0, 4, 3, 2, 1]', b""]))
    probes = ChildProbes(("sh", "-c", f"read asked; cat {tmp_path}/said; read more"), Usage)
    try:
        probes.ask("/data")
        found = []
        while not any(answer.path == "/data" for answer in found):
            found += probes.answers(30.0)
    finally:
        probes.close()
    good = [answer for answer in found if answer.path == "/data"]
    assert good[-1].found == Usage(4, 3, 2, 1)
