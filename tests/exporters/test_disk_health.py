"""What disks and their controllers say; NVMe's page is laid out as the NVM Express base specification gives it."""

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Reading, Site
from exporters.encode import accept
from exporters.sources.storage import disks, nvme, probes
from exporters.sources.storage.disks import Block, Blocks
from exporters.sources.storage.probes import Smart, ThreadProbes
from exporters.storage.disk_health import DiskHealthCollector
from pipeline.clock import utcnow

FIXTURES = Path(__file__).parents[1] / "fixtures"


def page(**fields: int) -> str:
    """A log page with bytes at the offsets that are named "b0", "b160" and so on."""
    data = bytearray(512)
    data[3] = 100
    for name, value in fields.items():
        at = int(name[1:])
        size = -(-value.bit_length() // 8) or 1
        data[at : at + size] = value.to_bytes(size, "little")
    return data.hex()


def test_the_page_is_read_in_base_units() -> None:
    told = nvme.health((FIXTURES / "nvme/smart-log.hex").read_text())
    assert told is not None
    assert (told.temperature, told.spare, told.spare_limit, told.wear) == (45.0, 0.09, 0.1, 1.03)
    assert (told.read, told.written) == (2000 * 512_000, 3000 * 512_000), "a data unit is a thousand times 512 bytes"
    assert (told.media_errors, told.unsafe_shutdowns) == (12, 4)


@pytest.mark.parametrize(
    ("warnings", "degraded", "hot"),
    [(0, False, False), (0b1, True, False), (0b10, False, True), (0b100, True, False), (0b1000, True, False), (0b10010, True, True)],
)
def test_heat_alone_is_no_failing_disk(warnings: int, degraded: bool, hot: bool) -> None:
    told = nvme.health(page(b0=warnings))
    assert told is not None and (told.degraded, told.hot) == (degraded, hot)


def test_a_page_that_no_controller_wrote_is_none_and_not_a_disk_without_spare() -> None:
    for text in ("", "zz", "00" * 511, "00" * 512, "ff" * 512):
        assert nvme.health(text) is None


def test_a_count_beyond_what_can_be_kept_is_absent() -> None:
    told = nvme.health(page(b160=1 << 127, b1=0))
    assert told is not None and told.media_errors is None and told.temperature is None


def test_the_command_is_get_log_page_two_of_the_whole_controller_in_the_kernels_layout() -> None:
    raw = bytes(probes.smart_command(0x1122334455667788))
    assert len(raw) == ctypes.sizeof(probes.smart_command(0)) == 72, "0x48, the size in NVME_IOCTL_ADMIN_CMD"
    assert raw[0] == 2 and raw[4:8] == b"\xff" * 4
    assert raw[24:32] == bytes.fromhex("8877665544332211") and raw[36:40] == (512).to_bytes(4, "little")
    assert raw[40:44] == (127 << 16 | 2).to_bytes(4, "little"), "128 words, less one; page 2"


def test_errors_state_and_model_are_the_kernels() -> None:
    assert Blocks(FIXTURES / "sys").of("sda") == Block(0x1F, True, "FAST SSD 960", "", True)
    assert Blocks(FIXTURES / "sys").of("nvme0n1") == Block(None, False, "NVME 3T2", "", True)
    assert Blocks(FIXTURES / "sys").of("dm-0") == Block(None, None, "", "", False)


def test_a_controller_is_told_of_under_its_disks_name_and_one_elsewhere_is_not_asked() -> None:
    assert disks.controllers(FIXTURES / "sys") == ["nvme0"], "nvme1 is reached over the network"
    assert disks.disk_of(FIXTURES / "sys", "nvme0") == "nvme0n1", "nvme0c1n1 is a path to it"
    assert disks.disk_of(FIXTURES / "sys", "nvme7") == "nvme7"


def readings(site: Site) -> list[Reading]:
    return list(DiskHealthCollector(site).collect(utcnow()))


def test_who_may_not_ask_a_controller_still_reads_its_temperature(site: Site) -> None:
    def denied(path: str) -> Smart:
        raise PermissionError(13, "Permission denied", path)

    (one,) = readings(replace(site, smarts=lambda: ThreadProbes(denied)))
    shown = {name: value for name, value in one.values.items() if value is not None}
    assert shown == {"disk_health.temperature": 41.85}


def test_a_controller_that_tells_nothing_at_all_has_no_reading(site: Site, tmp_path: Path) -> None:
    (tmp_path / "class/nvme/nvme0").mkdir(parents=True)

    def refused(path: str) -> Smart:
        raise OSError(5, "the controller answered with status 0x4002", path)

    assert readings(replace(site, sys=tmp_path, smarts=lambda: ThreadProbes(refused))) == []


def test_a_machine_without_nvme_asks_nobody(site: Site, tmp_path: Path) -> None:
    assert readings(replace(site, sys=tmp_path)) == []


@given(st.text("0123456789abcdefg \n", max_size=1200))
def test_any_page_gives_values_or_none_and_never_an_error(text: str) -> None:
    nvme.health(text)


@given(st.binary(min_size=512, max_size=600))
def test_every_page_of_a_disk_gives_values_that_are_believed_or_counted_as_rejected(data: bytes) -> None:
    site = Site("n", sys=FIXTURES / "sys", smarts=lambda: ThreadProbes(lambda _: Smart(data.hex())), probe_timeout=30.0)
    accepted, _ = accept(readings(site))
    values = {metric.name: value for metric, value in accepted[0].values}
    assert len(accepted) == 1 and all(
        0 <= values.get(f"disk_health.{name}", 0) <= 1 for name in ("spare", "spare_limit", "degraded", "hot")
    )


@given(st.binary(max_size=60))
def test_any_bytes_in_a_disks_files_give_values_or_none_and_never_an_error(tmp_path_factory: pytest.TempPathFactory, junk: bytes) -> None:
    sys = tmp_path_factory.getbasetemp() / "blocks"
    for place in ("block/sda/device", "class/nvme/nvme0/hwmon0"):
        (sys / place).mkdir(parents=True, exist_ok=True)
    for file in ("ioerr_cnt", "state", "model", "wwid"):
        (sys / "block/sda/device" / file).write_bytes(junk)
    (sys / "class/nvme/nvme0/hwmon0/temp1_input").write_bytes(junk)
    Blocks(sys).of("sda"), disks.temperature(sys, "nvme0"), disks.controllers(sys)


def test_another_disk_under_the_same_name_has_its_own_model_and_state(tmp_path: Path) -> None:
    blocks = Blocks(tmp_path)
    assert blocks.of("sda") == Block(None, None, "", "", False)
    old = _disk_device(tmp_path, "sda", "OLD ONE")
    assert blocks.of("sda") == Block(0, True, "OLD ONE", "naa.7", True)
    (old / "state").write_text("offline\n")
    (old / "ioerr_cnt").write_text("0x7\n")
    assert blocks.of("sda") == Block(7, False, "OLD ONE", "naa.7", True)
    old.rename(tmp_path / "taken out")
    assert blocks.of("sda") == Block(None, None, "", "", False)
    _disk_device(tmp_path, "sda", "NEW ONE")
    assert blocks.of("sda") == Block(0, True, "NEW ONE", "naa.7", True)


def test_a_disk_that_is_lent_or_far_away_is_not_fixed(tmp_path: Path) -> None:
    for name, model in {"sda": "FAST SSD", "sdb": "QEMU HARDDISK", "nvme1n1": "Amazon Elastic Block Store", "sdc": "nvme_card-pd"}.items():
        _disk_device(tmp_path, name, model)
    far = tmp_path / "devices/pci0000:00/usb2/2-1/host3"
    _disk_device(far, "sdd", "STICK")
    (tmp_path / "block/sdd").mkdir()
    (tmp_path / "block/sdd/device").symlink_to(far / "block/sdd/device")
    blocks = Blocks(tmp_path)
    assert [name for name in ("sda", "sdb", "sdc", "sdd", "nvme1n1") if blocks.of(name).fixed] == ["sda"]


def test_an_nvme_disks_own_name_stands_beside_its_device(tmp_path: Path) -> None:
    (tmp_path / "class/nvme0").mkdir(parents=True)
    (tmp_path / "class/nvme0/model").write_text("FAST SSD\n")
    (tmp_path / "block/nvme0n1").mkdir(parents=True)
    (tmp_path / "block/nvme0n1/wwid").write_text("eui.0025388\n")
    (tmp_path / "block/nvme0n1/device").symlink_to("../../class/nvme0")
    assert Blocks(tmp_path).of("nvme0n1") == Block(None, None, "FAST SSD", "eui.0025388", True)


def _disk_device(sys: Path, name: str, model: str) -> Path:
    device = sys / "block" / name / "device"
    device.mkdir(parents=True)
    for file, told in {"state": "running", "ioerr_cnt": "0x0", "model": model, "wwid": "naa.7"}.items():
        (device / file).write_text(f"{told}\n")
    return device
