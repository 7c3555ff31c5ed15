"""Records and lines of the kernel's log: forms as the kernel's documentation and sources have them, and whatever else may stand there."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.kernel.lines import LINES, recognise
from exporters.sources.kernel.kmsg import Kmsg
from exporters.sources.kernel.log import MAX_TEXT, KernelRecord, joined, parse, parse_line
from exporters.sources.storage import blocks

SAMPLES = [
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "xid", "79"),
    ("NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "xid", "79"),
    ("NVRM: GPU at PCI:0000:3b:00: GPU has fallen off the bus.", "xid", "79"),
    (
        "NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\nNVRM: fallen off the bus and",
        "xid",
        "79",
    ),
    ("NVRM: Xid (0000:03:00): 14, Channel 00000001", "xid", "14"),
    ("NVRM: Xid (PCI:0000:18:00 GPU-I:05): 31, pid=77, name=train.py, Ch 00000008, intr 00000000. MMU Fault", "xid", "31"),
    ("NVRM: Xid (PCI:0018:01:00): 145, pid=12, name=python, RLW_SRC_TRACK Nonfatal XC1 i0 Link 17 (0x00000007 0x00000004)", "xid", "145"),
    ("nvidia-nvswitch0: SXid (PCI:0000:c3:00.0): 20009, Non-fatal, Link 28 RX Short Error Rate", "sxid", "20009"),
    ("NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x24:0xffff:1589)", "gpu_init_failed", ""),
    ("Out of memory: Killed process 4711 (py thon)) total-vm:1234kB, anon-rss:1kB", "oom_victim", ""),
    ("INFO: task jbd2/sda1-8:123 blocked for more than 120 seconds.", "hung_task", "task"),
    ("watchdog: Watchdog detected hard LOCKUP on cpu 3", "hung_task", "hard_lockup"),
    ("NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "hung_task", "hard_lockup"),
    ("rcu: INFO: rcu_preempt self-detected stall on CPU", "hung_task", "rcu_stall"),
    ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", "hung_task", "rcu_stall"),
    ("BUG: workqueue lockup - pool cpus=3 node=0 flags=0x0 nice=0 stuck for 34s!", "hung_task", "workqueue"),
    ("EDAC MC0: 1 CE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1)", "machine_check", "corrected"),
    ("EDAC MC2: 3 UE memory read error on CPU_SrcID#1_MC#0_Chan#1_DIMM#0 (channel:1)", "machine_check", "uncorrected"),
    ("mce: [Hardware Error]: CPU 5: Machine Check: 0 Bank 7: 8c00004000010091", "machine_check", "reported"),
    ("[Hardware Error]: Corrected error, no action required.", "machine_check", "corrected"),
    ("[Hardware Error]: Uncorrected, software restartable error.", "machine_check", "uncorrected"),
    ("{1}[Hardware Error]: event severity: fatal", "machine_check", "uncorrected"),
    ("Memory failure: 0x1a2b3c: recovery action for dirty LRU page: Recovered", "machine_check", "uncorrected"),
    ("thermal thermal_zone0: acpitz: critical temperature reached, shutting down", "thermal", "zone"),
    ("mlx5_core 0000:3b:00.0: temp_warn:191:(pid 0): High temperature on sensors with bit set 0 1", "thermal", "adapter"),
    (
        "nvidia 0000:3b:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction Layer, (Requester ID)",
        "pcie_error",
        "nonfatal",
    ),
    ("pcieport 0000:3a:00.0: PCIe Bus Error: severity=Correctable, type=Data Link Layer, (Receiver ID)", "pcie_error", "corrected"),
    ("pcieport 0000:3a:00.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie_error", "fatal"),
    ("blk_update_request: I/O error, dev sda, sector 2048", "io_error", "io"),
    ("print_req_error: critical medium error, dev sdb, sector 99", "io_error", "medium"),
    ("critical target error, dev nvme0n1, sector 1234 op 0x3:(DISCARD) flags 0x800", "io_error", "target"),
    ("nvme nvme0: I/O 123 QID 4 timeout, aborting", "io_error", "timeout"),
    ("nvme nvme0: I/O tag 12 (1000) opcode 0x2 (I/O Cmd) QID 3 timeout, aborting req_op:READ(0) size:4096", "io_error", "timeout"),
    ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "io_error", "controller"),
    (
        "XFS (dm-0): Corruption of in-memory data (0x8) detected at x+0x1/0x2 (fs/xfs/x.c:957).  Shutting down filesystem.",
        "filesystem_error",
        "shutdown",
    ),
    ('XFS (sda1): metadata I/O error in "xfs_read_agf+0x1" at daddr 0x1 len 1 error 5', "filesystem_error", "error"),
    ("BTRFS: error (device sdb1: state EA) in btrfs_commit:2 errno=-5 IO failure", "filesystem_error", "error"),
    ("BTRFS info (device sdb1: state E): forced readonly", "remounted_read_only", ""),
    ("BTRFS info (device sdb1): forced readonly", "remounted_read_only", ""),
    ("FAT-fs (sdc1): Filesystem has been set read-only", "remounted_read_only", ""),
    ("nfs: server filer01 not responding, timed out", "storage_server", "lost"),
    ("Lustre: lfs-OST0001-osc-ff: Connection to lfs-OST0001 (at 10.0.0.1@o2ib) was lost; in progress operations", "storage_server", "lost"),
    ("Lustre: lfs-OST0001-osc-ff: Connection restored to 10.0.0.1@o2ib (at 10.0.0.1@o2ib)", "storage_server", "back"),
    ("mlx5_core 0000:3b:00.0 ens2f0np0: Link down", "link_changed", "down"),
    ("bnxt_en 0000:5e:00.0 eth0: NIC Link is Down", "link_changed", "down"),
    ("igb 0000:01:00.0 eth0: igb: eth0 NIC Link is Up 1000 Mbps Full Duplex, Flow Control: RX", "link_changed", "up"),
    ("mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Power budget exceeded", "link_changed", "module"),
    ("mlx5_core 0000:3b:00.1: Port module event: module 1, Cable unplugged", "link_changed", "module"),
    ("bond0: (slave eth0): link status definitely down, disabling slave", "link_changed", "down"),
    ("mlx5_ib: mlx5_0: Port: 1 Link DOWN", "link_changed", "down"),
    ("python3[1234]: segfault at 0 ip 0000000000000000 sp 00007ffd error 14 likely on CPU 3 (core 3, socket 0)", "segfault", "segfault"),
    ("traps: python[1234] general protection fault ip:7f11 sp:7ffd error:0 in libc.so.6[7f00+1000]", "segfault", "general_protection"),
    ("traps: a.out[77] trap invalid opcode ip:401 sp:7ff error:0 in a.out[400000+1000]", "segfault", "invalid_opcode"),
    ("Oops: general protection fault, probably for non-canonical address 0xdead: 0000 [#1] SMP", "kernel_oops", "oops"),
    ("kernel BUG at mm/slub.c:305!", "kernel_oops", "bug"),
    ("mce: [Hardware Error]: Machine check events logged", None, ""),
    ("EDAC i10nm MC1: HANDLING MCE MEMORY ERROR", None, ""),
    ("EXT4-fs (loop0): re-mounted 1-2-3 ro. Quota mode: none.", None, ""),
    ("EXT4-fs (sda1): mounted filesystem with ordered data mode.", None, ""),
    ("ACPI: PCI: Interrupt link LNKA configured for IRQ 10", None, ""),
    ("mlx5_core 0000:3b:00.1: Port module event: module 1, Cable plugged", None, ""),
    ("NVRM: loading NVIDIA UNIX x86_64 Kernel Module  570.86.15", None, ""),
    ("", None, ""),
]


@pytest.mark.parametrize(("text", "kind", "code"), SAMPLES)
def test_a_line_tells_what_its_driver_means(text: str, kind: str | None, code: str) -> None:
    found = recognise(text)
    assert (found.kind.name if found else None, found.code if found else "") == (kind, code)


def test_the_table_fills_only_attributes_that_the_catalogue_knows_and_every_kind_has_a_sample() -> None:
    for line in LINES:
        assert set(line.pattern.groupindex) - {"code", "info"} <= set(line.kind.attrs), line
    assert {line.kind.name for line in LINES} == {kind for _, kind, _ in SAMPLES if kind}


def test_the_numbers_of_a_link_error_are_read() -> None:
    found = recognise(
        "NVRM: Xid (PCI:0018:01:00): 149, NETIR_LINK_EVT  Fatal   XC0 i0 Link 08 (0x004505c6 0x00000000 0x00000000 0x00000000)"
    )
    assert found is not None
    assert found.attrs == {
        "pci": "0018:01:00",
        "subcode": "NETIR_LINK_EVT",
        "fatal": "Fatal",
        "link": "08",
        "info": "0x004505c6",
        "status": "0x00000000",
    }


@given(st.text())
def test_any_text_is_recognised_or_not(text: str) -> None:
    recognise(text)


@given(st.sampled_from([text for text, kind, _ in SAMPLES if kind]), st.integers(0, 200), st.text(max_size=5))
def test_a_damaged_line_is_recognised_or_not(text: str, where: int, garbage: str) -> None:
    recognise(text[:where] + garbage + text[where:])


def test_no_line_of_any_length_takes_long() -> None:
    for line in LINES:
        recognise((line.hint + " ") * 2000)  # the text of a record is bounded before; a pattern that backtracks would not end


# --- records ------------------------------------------------------------------------------------


def test_a_record_is_read_as_the_kernels_documentation_says() -> None:
    # from the form of Documentation/ABI/testing/dev-kmsg: 30 is facility 3 (daemon) and level 6
    raw = b"30,151,3336700,-,caller=T1;Loaded \\x22unit\\x5c \xc3\xa9\n SUBSYSTEM=acpi\n DEVICE=+acpi:PNP0A03:00\n"
    assert parse(raw) == KernelRecord(
        'Loaded "unit\\ é', 151, level=6, facility=3, clock=3.3367, fields={"SUBSYSTEM": "acpi", "DEVICE": "+acpi:PNP0A03:00"}
    )


@pytest.mark.parametrize("raw", [b"", b"x", b"1,2;x", b"4,-1,0,-;x", b"4,1,0,-x", b"\xff" * 50, b"4,1," + b"9" * 30 + b",-;x"])
def test_what_is_no_record_is_none(raw: bytes) -> None:
    assert parse(raw) is None


@given(st.binary())
def test_any_bytes_are_a_record_or_none(raw: bytes) -> None:
    for record in (parse(raw), parse(b"4,1,0,-;" + raw), parse_line(raw, 1)):
        assert record is None or len(record.text) <= MAX_TEXT


@given(st.integers(0, 191), st.integers(0, 2**63), st.integers(0, 2**62), st.text(st.characters(codec="utf-8"), max_size=200))
def test_what_the_kernel_prints_of_a_line_is_read_as_the_line(prefix: int, sequence: int, micros: int, text: str) -> None:
    shown = "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in text.encode())  # as msg_print_ext_body does
    record = parse(f"{prefix},{sequence},{micros},-;{shown}\n".encode())
    assert record is not None and (record.text, record.sequence, record.level, record.facility) == (text, sequence, prefix % 8, prefix // 8)


@pytest.mark.parametrize(
    ("line", "text", "clock"),
    [
        (b"[  123.456789] hello", "hello", 123.456789),
        (b"<3>[    0.000000] hello", "hello", 0.0),
        (b"[  123.456789][ T4711] hello", "hello", 123.456789),
        (b"Nov 30 12:00:00 node1 kernel: [ 7.000001] hello", "hello", 7.000001),
        (b"2026-11-30T12:00:00+00:00 node1 kernel: hello", "hello", None),
        (b"6,5,1000000,-;hello", "hello", 1.0),
    ],
)
def test_a_saved_log_may_have_been_written_by_dmesg_or_syslog(line: bytes, text: str, clock: float | None) -> None:
    record = parse_line(line, 9)
    assert record is not None and (record.text, record.clock) == (text, clock)


def test_fragments_are_put_together_and_nothing_else() -> None:
    def part(text: str, flag: str, number: int, level: int = 4) -> KernelRecord:
        return KernelRecord(text, number, level=level, flag=flag)

    records = [part("a", "c", 1), part("b", "+", 2), part("x", "-", 3), part("c", "c", 4), part("d", "c", 5), part("e", "+", 6, level=3)]
    assert [(r.text, r.sequence) for r in joined(records)] == [("ab", 2), ("x", 3), ("cd", 5), ("e", 6)]


# --- files --------------------------------------------------------------------------------------


def test_a_saved_file_is_read_once_and_then_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"6,5,1,-;one\n KEY=value\nnonsense\n[ 1.000000] two")
    log = Kmsg(path, None)
    read = log.read()
    assert [(r.text, r.sequence, dict(r.fields)) for r in read.records] == [("one", 5, {"KEY": "value"}), ("two", 3, {})]
    assert (read.malformed, read.all) == (1, True)
    assert not log.read().records
    with path.open("ab") as f:
        f.write(b"\n6,6,2,-;three\n")
    assert [r.text for r in log.read().records] == ["three"]
    log.close()


@given(st.binary(max_size=2000))
def test_a_file_of_any_bytes_is_read(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / f"any{os.getpid()}"
    path.write_bytes(raw)
    log = Kmsg(path, None)
    read = log.read()
    assert len(read.records) + read.malformed <= raw.count(b"\n") + 1
    log.close()


def test_what_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="neither the kernel's log nor a file"):
        Kmsg(tmp_path, None)


@pytest.mark.parametrize(
    ("name", "disk"),
    [
        ("sda1", "sda"),
        ("sda", "sda"),
        ("nvme0n1p2", "nvme0n1"),
        ("nvme0n1", "nvme0n1"),
        ("nvme0", "nvme0"),
        ("dm-0", "dm-0"),
        ("md127", "md127"),
        ("md127p1", "md127"),
        ("vdb12", "vdb"),
        ("loop0", "loop0"),
    ],
)
def test_a_partition_is_part_of_its_disk(name: str, disk: str) -> None:
    assert blocks.whole(name) == disk
