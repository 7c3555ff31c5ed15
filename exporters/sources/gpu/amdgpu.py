"""AMD's GPUs from what the kernel's amdgpu driver tells in sysfs (Documentation/gpu/amdgpu). Reading may hang while a GPU is reset."""

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

from exporters.sources.gpu import pci
from exporters.sources.gpu.accelerator import Device, Driver, Found, Lost, Roll, Seen, State, User, Value

VENDOR: Final = 0x1002
_CARD: Final = re.compile(r"card\d+")
_GENERATIONS: Final = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}  # of PCI Express, by GT/s
_ERRORS: Final = re.compile(r"^(ue|ce): *(\d+)$", re.M)
_MICRO, _MILLI = 1_000_000, 1000


def load(sys: Path) -> Driver | None:
    """The driver of the machine whose /sys is `sys`; None where it is not loaded."""
    return AmdGpu(sys) if (sys / "module/amdgpu").exists() else None


class AmdGpu:
    """The driver, as `accelerator.Driver`."""

    def __init__(self, sys: Path) -> None:
        self._sys = sys
        self._asking = ""

    @property
    def asking(self) -> str:
        """The index of the GPU that `roll` asks for now, "" for none."""
        return self._asking

    def roll(self, *, renew: bool, hanging: Collection[str]) -> Roll:
        """The GPUs that the driver is bound to. Who they are is kept by the kernel and asks no GPU."""
        return Roll([found for folder in sorted(self._cards(), key=_number) if (found := self._find(folder))])

    def read(self, found: Found) -> Seen:
        """How a GPU is. Raises Lost where it is no longer there."""
        root: Path = found.handle
        if not (root / "vendor").exists():
            raise Lost("the GPU is no longer on the bus")
        users = list(_users(self._sys, root, found.device.uuid))
        return Seen(_state(root, len(users)), users=users)

    def _cards(self) -> Iterator[Path]:
        try:
            yield from (one for one in (self._sys / "class/drm").iterdir() if _CARD.fullmatch(one.name))
        except OSError:
            return

    def _find(self, folder: Path) -> Found | None:
        root = folder / "device"
        bound = dict(line.partition("=")[::2] for line in _text(root / "uevent").splitlines())
        address = pci.normal(bound.get("PCI_SLOT_NAME", ""))
        if bound.get("DRIVER") != "amdgpu" or not address:
            return None
        unique = _text(root / "unique_id").lower()
        device = Device(
            uuid=f"GPU-{unique}" if unique.strip("0") else f"GPU-{address}",
            pci=address,
            index=str(_number(folder)),
            vendor="amd",
            model=_text(root / "product_name"),
            serial=_text(root / "serial_number"),
            driver=_text(self._sys / "module/amdgpu/version"),
            vbios=_text(root / "vbios_version"),
        )
        return Found(device, root)


def _state(root: Path, users: int) -> State:
    total, used = _int(root / "mem_info_vram_total"), _int(root / "mem_info_vram_used")
    errors, retired = _errors(root / "ras"), [line.split(":")[-1].strip() for line in _text(root / "ras/gpu_vram_bad_pages").splitlines()]
    inside = [block for block in errors if block != "umc"]
    sensors = next(iter(sorted((root / "hwmon").glob("hwmon*"))), root / "hwmon")
    temperatures = {_text(label): label.name.removesuffix("_label") for label in sensors.glob("temp*_label")}
    core = temperatures.get("junction", temperatures.get("edge", "temp1"))
    limit = _int(sensors / f"{core}_crit")
    power = _int(sensors / "power1_average")
    return State(
        utilization=_over(_int(root / "gpu_busy_percent"), 100),
        memory_utilization=_over(_int(root / "mem_busy_percent"), 100),
        memory_total=total,
        memory_used=used,
        memory_free=None if total is None or used is None or used > total else total - used,
        temperature=_over(_int(sensors / f"{core}_input"), _MILLI),
        memory_temperature=_over(_int(sensors / f"{temperatures['mem']}_input"), _MILLI) if "mem" in temperatures else None,
        temperature_slowdown=_over(limit, _MILLI),
        fan=_over(_int(sensors / "pwm1"), 255),
        power=_over(power if power is not None else _int(sensors / "power1_input"), _MICRO),
        power_limit=_over(_int(sensors / "power1_cap"), _MICRO),
        clock_sm=_int(sensors / "freq1_input"),
        clock_memory=_int(sensors / "freq2_input"),
        pcie_width=_int(root / "current_link_width"),
        pcie_width_max=_int(root / "max_link_width"),
        pcie_generation=_generation(root / "current_link_speed"),
        pcie_generation_max=_generation(root / "max_link_speed"),
        pcie_replays=_int(root / "pcie_replay_count"),
        ecc_volatile_corrected=_sum(errors, errors, "ce"),
        ecc_volatile_uncorrected=_sum(errors, errors, "ue"),
        ecc_volatile_dram_corrected=_sum(errors, ["umc"], "ce"),
        ecc_volatile_dram_uncorrected=_sum(errors, ["umc"], "ue"),
        ecc_volatile_sram_corrected=_sum(errors, inside, "ce"),
        ecc_volatile_sram_uncorrected=_sum(errors, inside, "ue"),
        retired_double_bit=retired.count("R") if (root / "ras/gpu_vram_bad_pages").exists() else None,
        retired_pending=int("P" in retired) if (root / "ras/gpu_vram_bad_pages").exists() else None,
        processes=users,
    )


def _users(sys: Path, root: Path, uuid: str) -> Iterator[User]:
    """The processes of the compute driver (kfd) on this GPU, which it calls by a number of its own."""
    kfd = sys / "class/kfd/kfd"
    wanted = uuid.removeprefix("GPU-")
    for node in sorted((kfd / "topology/nodes").glob("*")):
        told = dict(line.partition(" ")[::2] for line in _text(node / "properties").splitlines())
        unique, number = told.get("unique_id", ""), _text(node / "gpu_id")
        if unique.isascii() and unique.isdigit() and f"{int(unique):016x}" == wanted and number not in ("", "0"):
            for used in sorted((kfd / "proc").glob(f"*/vram_{number}")):
                if used.parent.name.isascii() and used.parent.name.isdigit():
                    yield User(int(used.parent.name), _int(used))


def _errors(ras: Path) -> dict[str, dict[str, int]]:
    """Corrected ("ce") and uncorrected ("ue") errors by the part of the GPU that counted them; umc is the memory."""
    found = {}
    for path in sorted(ras.glob("*_err_count")):
        counts = {kind: int(count) for kind, count in _ERRORS.findall(_text(path))}
        if counts:
            found[path.name.removesuffix("_err_count")] = counts
    return found


def _sum(errors: dict[str, dict[str, int]], blocks: Collection[str], kind: str) -> Value:
    counts = [errors[block][kind] for block in blocks if kind in errors.get(block, {})]
    return sum(counts) if counts else None


def _generation(path: Path) -> Value:
    """The generation that a speed such as "16.0 GT/s PCIe" stands for."""
    found = re.match(r"\d{1,3}(\.\d)?", _text(path))
    return _GENERATIONS.get(float(found[0])) if found else None


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("card"))


def _over(value: int | None, parts: int) -> Value:
    return None if value is None else value / parts


def _int(path: Path) -> int | None:
    """A number of at most 20 digits; None for anything else."""
    text = _text(path)
    return int(text) if re.fullmatch(r"-?[0-9]{1,20}", text) else None


def _text(path: Path) -> str:
    """The file's text, "" where it cannot be read."""
    try:
        return path.read_bytes()[:65536].decode("utf-8", "replace").strip()
    except OSError:
        return ""
