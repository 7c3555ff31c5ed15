"""GPU readings as NVIDIA's dcgm-exporter names and labels them, so that its dashboards show them. Pure.

Names, units and labels are those of its default counters: MHz, MiB, watts, millijoules, percent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from exporters.encode import Accepted
from pipeline.catalog.metrics import GPU

_MIB: Final = 1 / (1 << 20)


class _Name(NamedTuple):
    """Their name and type, our metric, what one of our units is in theirs, and help. `whole`: an integer there."""

    name: str
    type: str
    of: str
    scale: float
    help: str
    whole: bool = True


_NAMES: Final = (
    _Name("DCGM_FI_DEV_SM_CLOCK", "gauge", "gpu.clock.sm", 1e-6, "SM clock frequency (in MHz)."),
    _Name("DCGM_FI_DEV_MEM_CLOCK", "gauge", "gpu.clock.memory", 1e-6, "Memory clock frequency (in MHz)."),
    _Name("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "gpu.memory.temperature", 1, "Memory temperature (in C)."),
    _Name("DCGM_FI_DEV_GPU_TEMP", "gauge", "gpu.temperature", 1, "GPU temperature (in C)."),
    _Name("DCGM_FI_DEV_POWER_USAGE", "gauge", "gpu.power", 1, "Power draw (in W).", whole=False),
    _Name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "gpu.energy", 1e3, "Total energy consumption since boot (in mJ)."),
    _Name("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "gpu.pcie.replays", 1, "Total number of PCIe retries."),
    _Name("DCGM_FI_DEV_GPU_UTIL", "gauge", "gpu.utilization", 100, "GPU utilization (in %)."),
    _Name("DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "gpu.memory.utilization", 100, "Memory utilization (in %)."),
    _Name("DCGM_FI_DEV_ENC_UTIL", "gauge", "gpu.encoder.utilization", 100, "Encoder utilization (in %)."),
    _Name("DCGM_FI_DEV_DEC_UTIL", "gauge", "gpu.decoder.utilization", 100, "Decoder utilization (in %)."),
    _Name("DCGM_FI_DEV_FB_FREE", "gauge", "gpu.memory.free", _MIB, "Framebuffer memory free (in MiB)."),
    _Name("DCGM_FI_DEV_FB_USED", "gauge", "gpu.memory.used", _MIB, "Framebuffer memory used (in MiB)."),
    _Name("DCGM_FI_DEV_FB_RESERVED", "gauge", "gpu.memory.reserved", _MIB, "Framebuffer memory reserved (in MiB)."),
    _Name("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "gpu.ecc.volatile.corrected", 1, "Volatile single-bit ECC errors."),
    _Name("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "gpu.ecc.volatile.uncorrected", 1, "Volatile double-bit ECC errors."),
    _Name("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "gpu.ecc.aggregate.corrected", 1, "Persistent single-bit ECC errors."),
    _Name("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "gpu.ecc.aggregate.uncorrected", 1, "Persistent double-bit ECC errors."),
    _Name("DCGM_FI_DEV_RETIRED_SBE", "counter", "gpu.retired.single_bit", 1, "Pages retired for single-bit errors."),
    _Name("DCGM_FI_DEV_RETIRED_DBE", "counter", "gpu.retired.double_bit", 1, "Pages retired for double-bit errors."),
    _Name("DCGM_FI_DEV_RETIRED_PENDING", "gauge", "gpu.retired.pending", 1, "Pages that wait to be retired."),
    _Name("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "gpu.remap.uncorrectable", 1, "Rows remapped for uncorrectable errors."),
    _Name("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "counter", "gpu.remap.correctable", 1, "Rows remapped for correctable errors."),
    _Name("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "gpu.remap.failed", 1, "Whether remapping of rows has failed."),
    _Name("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "gpu.remap.pending", 1, "Whether remapping of rows is pending."),
    _Name("DCGM_FI_DEV_POWER_VIOLATION", "counter", "gpu.throttle.power.time", 1e9, "Throttling for power (in ns)."),
    _Name("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "gpu.throttle.thermal.time", 1e9, "Throttling for heat (in ns)."),
    _Name("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "gpu.activity.graphics", 1, "Ratio of time the graphics engine is active.", False),
    _Name("DCGM_FI_PROF_SM_ACTIVE", "gauge", "gpu.activity.sm", 1, "Ratio of cycles an SM has a warp assigned.", False),
    _Name("DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "gpu.activity.occupancy", 1, "Ratio of warps resident on an SM.", False),
    _Name("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", "gpu.activity.tensor", 1, "Ratio of cycles the tensor pipe is active.", False),
    _Name("DCGM_FI_PROF_DRAM_ACTIVE", "gauge", "gpu.activity.dram", 1, "Ratio of cycles the memory interface is active.", False),
    _Name("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gauge", "gpu.activity.fp64", 1, "Ratio of cycles the fp64 pipe is active.", False),
    _Name("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gauge", "gpu.activity.fp32", 1, "Ratio of cycles the fp32 pipe is active.", False),
    _Name("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gauge", "gpu.activity.fp16", 1, "Ratio of cycles the fp16 pipe is active.", False),
)


def dcgm_text(readings: Iterable[Accepted]) -> str:
    """The readings of NVIDIA GPUs among `readings`, in exposition format 0.0.4; "" where there are none. XIDs are not among them:
    they are events, and no value that stays."""
    gpus = [(_labels(dict(reading.labels)), _values(reading)) for reading in readings if _nvidia(reading)]
    return "".join(_lines(name, gpus) for name in _NAMES)


def _nvidia(reading: Accepted) -> bool:
    return reading.family is GPU and ("vendor", "nvidia") in reading.labels


def _values(reading: Accepted) -> dict[str, float | int]:
    return {metric.name: value for metric, value in reading.values}


def _lines(name: _Name, gpus: Sequence[tuple[str, Mapping[str, float | int]]]) -> str:
    rows = [f"{name.name}{labels} {_shown(name, values)}\n" for labels, values in gpus if name.of in values]
    return f"# HELP {name.name} {name.help}\n# TYPE {name.name} {name.type}\n{''.join(rows)}" if rows else ""


def _shown(name: _Name, values: Mapping[str, float | int]) -> str:
    value = values[name.of] * name.scale
    return str(round(value)) if name.whole else f"{value:.6f}"


def _labels(ours: Mapping[str, str]) -> str:
    index = ours.get("index", "")
    theirs = {
        "gpu": index,
        "UUID": ours["uuid"],
        "pci_bus_id": _address(ours.get("pci", "")),
        "device": f"nvidia{index}" if index else "",
        "modelName": ours.get("model", ""),
        "Hostname": ours["node"],
        "DCGM_FI_DRIVER_VERSION": ours.get("driver", ""),
    }
    quoted = ((key, word.replace("\\", r"\\").replace('"', r"\"")) for key, word in theirs.items())
    return "{" + ",".join(f'{key}="{word}"' for key, word in quoted) + "}"


def _address(pci: str) -> str:
    """As they write it: a domain of eight digits, upper case."""
    domain, _, rest = pci.partition(":")
    return f"{domain:0>8}:{rest}".upper() if rest else ""
