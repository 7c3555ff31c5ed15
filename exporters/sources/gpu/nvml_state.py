"""One GPU's state from NVML: tables of what is asked for, and the few values that take more than a call."""

from collections.abc import Callable, Mapping
from ctypes import byref
from typing import Any, Final

import pynvml as nvml

from exporters.sources.gpu.accelerator import User, Value
from exporters.sources.gpu.nvml_values import ask, fields, number, scaled

_MAX_PID: Final = 1 << 22  # the kernel's highest
_MHZ, _MILLI, _PERCENT, _NANO, _KIB = 1e6, 1e-3, 1e-2, 1e-9, 1024
_ALL_LINKS: Final = 0xFFFFFFFF
_CORRECTED, _UNCORRECTED = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
_VOLATILE, _AGGREGATE = nvml.NVML_VOLATILE_ECC, nvml.NVML_AGGREGATE_ECC
_DRAM, _SRAM = nvml.NVML_MEMORY_LOCATION_DRAM, nvml.NVML_MEMORY_LOCATION_SRAM
_COMPLETED, _DEGRADED = nvml.NVML_GPU_FABRIC_STATE_COMPLETED, 1  # in each two-bit part of the health mask: 1 yes, 2 no, 0 not known

# Name, scale to the base unit, function, its arguments.
_CALLS: Final[tuple[tuple[str, float, Callable[..., Any], tuple[Any, ...]], ...]] = (
    ("temperature", 1, nvml.nvmlDeviceGetTemperature, (nvml.NVML_TEMPERATURE_GPU,)),
    ("temperature_slowdown", 1, nvml.nvmlDeviceGetTemperatureThreshold, (nvml.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,)),
    ("fan", _PERCENT, nvml.nvmlDeviceGetFanSpeed, ()),
    ("power", _MILLI, nvml.nvmlDeviceGetPowerUsage, ()),
    ("power_limit", _MILLI, nvml.nvmlDeviceGetEnforcedPowerLimit, ()),
    ("energy", _MILLI, nvml.nvmlDeviceGetTotalEnergyConsumption, ()),
    ("performance_state", 1, nvml.nvmlDeviceGetPerformanceState, ()),
    ("clock_sm", _MHZ, nvml.nvmlDeviceGetClockInfo, (nvml.NVML_CLOCK_SM,)),
    ("clock_sm_max", _MHZ, nvml.nvmlDeviceGetMaxClockInfo, (nvml.NVML_CLOCK_SM,)),
    ("clock_memory", _MHZ, nvml.nvmlDeviceGetClockInfo, (nvml.NVML_CLOCK_MEM,)),
    ("clock_memory_max", _MHZ, nvml.nvmlDeviceGetMaxClockInfo, (nvml.NVML_CLOCK_MEM,)),
    ("pcie_width", 1, nvml.nvmlDeviceGetCurrPcieLinkWidth, ()),
    ("pcie_width_max", 1, nvml.nvmlDeviceGetMaxPcieLinkWidth, ()),
    ("pcie_generation", 1, nvml.nvmlDeviceGetCurrPcieLinkGeneration, ()),
    ("pcie_generation_max", 1, nvml.nvmlDeviceGetMaxPcieLinkGeneration, ()),
    ("pcie_replays", 1, nvml.nvmlDeviceGetPcieReplayCounter, ()),
    ("ecc_volatile_corrected", 1, nvml.nvmlDeviceGetTotalEccErrors, (_CORRECTED, _VOLATILE)),
    ("ecc_volatile_uncorrected", 1, nvml.nvmlDeviceGetTotalEccErrors, (_UNCORRECTED, _VOLATILE)),
    ("ecc_aggregate_corrected", 1, nvml.nvmlDeviceGetTotalEccErrors, (_CORRECTED, _AGGREGATE)),
    ("ecc_aggregate_uncorrected", 1, nvml.nvmlDeviceGetTotalEccErrors, (_UNCORRECTED, _AGGREGATE)),
    *(
        (f"ecc_{span}_{place}_{kind}", 1, nvml.nvmlDeviceGetMemoryErrorCounter, (error, counter, location))
        for span, counter in (("volatile", _VOLATILE), ("aggregate", _AGGREGATE))
        for place, location in (("dram", _DRAM), ("sram", _SRAM))
        for kind, error in (("corrected", _CORRECTED), ("uncorrected", _UNCORRECTED))
    ),
)

# Id and scope of a field, name, scale. The throttle times are counted in nanoseconds, NVLink's data in KiB.
_FIELDS: Final[tuple[tuple[int, int, str, float], ...]] = (
    (nvml.NVML_FI_DEV_MEMORY_TEMP, 0, "memory_temperature", 1),
    (nvml.NVML_FI_DEV_ECC_CURRENT, 0, "ecc_enabled", 1),
    (nvml.NVML_FI_DEV_RETIRED_SBE, 0, "retired_single_bit", 1),
    (nvml.NVML_FI_DEV_RETIRED_DBE, 0, "retired_double_bit", 1),
    (nvml.NVML_FI_DEV_RETIRED_PENDING, 0, "retired_pending", 1),
    (nvml.NVML_FI_DEV_PERF_POLICY_POWER, 0, "throttle_power_time", _NANO),
    (nvml.NVML_FI_DEV_PERF_POLICY_THERMAL, 0, "throttle_thermal_time", _NANO),
    (nvml.NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS, 0, "pcie_correctable_errors", 1),
    (nvml.NVML_FI_DEV_PCIE_COUNT_NON_FATAL_ERROR, 0, "pcie_nonfatal_errors", 1),
    (nvml.NVML_FI_DEV_PCIE_COUNT_FATAL_ERROR, 0, "pcie_fatal_errors", 1),
    (nvml.NVML_FI_DEV_PCIE_COUNT_TX_BYTES, 0, "pcie_sent", 1),
    (nvml.NVML_FI_DEV_PCIE_COUNT_RX_BYTES, 0, "pcie_received", 1),
    (nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, 0, "recovery_action", 1),
    (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, _ALL_LINKS, "nvlink_sent", _KIB),
    (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, _ALL_LINKS, "nvlink_received", _KIB),
)

_REASONS: Final[Mapping[str, int]] = {
    "throttle_idle": nvml.nvmlClocksEventReasonGpuIdle,
    "throttle_application_clocks": nvml.nvmlClocksEventReasonApplicationsClocksSetting,
    "throttle_sw_power_cap": nvml.nvmlClocksEventReasonSwPowerCap,
    "throttle_hw_slowdown": nvml.nvmlClocksEventReasonHwSlowdown,
    "throttle_sync_boost": nvml.nvmlClocksEventReasonSyncBoost,
    "throttle_sw_thermal": nvml.nvmlClocksEventReasonSwThermalSlowdown,
    "throttle_hw_thermal": nvml.nvmlClocksEventReasonHwThermalSlowdown,
    "throttle_hw_power_brake": nvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
}


def values(handle: Any) -> dict[str, Value]:
    """What one value of the driver each says, by the names of `accelerator.State`. Raises Lost and NoDriver."""
    found = {name: number(ask(call, handle, *arguments), scale) for name, scale, call, arguments in _CALLS}
    found |= scaled([(name, scale) for *_, name, scale in _FIELDS], fields(handle, [(key, scope) for key, scope, *_ in _FIELDS]))
    for part in (_utilization, memory, _reasons, _remapped, _fabric, _mig):
        found |= part(handle)
    return found


def memory(handle: Any) -> dict[str, Value]:
    """Version 2 of the call tells what the driver keeps for itself; version 1, of older drivers, counts it as used."""
    found = ask(nvml.nvmlDeviceGetMemoryInfo, handle, nvml.nvmlMemory_v2)
    reserved = None if found is None else number(found.reserved)
    found = found or ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    if found is None:
        return {}
    told = {"total": number(found.total), "used": number(found.used), "free": number(found.free), "reserved": reserved}
    return {f"memory_{name}": value for name, value in told.items()}


def users(handle: Any, total: Value) -> tuple[list[User], bool]:
    """The processes that compute there; and whether some were left out that cannot be: a library and a driver that understand
    the list differently shift its parts against each other. `total` is the GPU's memory in bytes."""
    listed = ask(nvml.nvmlDeviceGetComputeRunningProcesses, handle) or []
    good: dict[int, User] = {}
    bad = 0
    for one in listed:
        used = number(one.usedGpuMemory)
        if not 0 < one.pid <= _MAX_PID or (used is not None and total is not None and used > total):
            bad += 1
        elif one.pid not in good or used is not None:  # a process may stand there once for each MIG instance
            before = good[one.pid].memory if one.pid in good else None
            good[one.pid] = User(one.pid, used if before is None or used is None else before + used)
    return list(good.values()), bad > 0


def _utilization(handle: Any) -> dict[str, Value]:
    rates = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    encoder, decoder = (ask(call, handle) for call in (nvml.nvmlDeviceGetEncoderUtilization, nvml.nvmlDeviceGetDecoderUtilization))
    return {
        "utilization": None if rates is None else number(rates.gpu, _PERCENT),
        "memory_utilization": None if rates is None else number(rates.memory, _PERCENT),
        "encoder_utilization": None if encoder is None else number(encoder[0], _PERCENT),
        "decoder_utilization": None if decoder is None else number(decoder[0], _PERCENT),
    }


def _reasons(handle: Any) -> dict[str, Value]:
    """Why clocks are low. Drivers before R535 know the call by its old name only."""
    mask = ask(nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    mask = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle) if mask is None else mask
    if number(mask) is None:
        return {}
    return {name: int(bool(mask & bit)) for name, bit in _REASONS.items()}


def _remapped(handle: Any) -> dict[str, Value]:
    rows = ask(nvml.nvmlDeviceGetRemappedRows, handle) or (None,) * 4
    banks = ask(nvml.nvmlDeviceGetRowRemapperHistogram, handle)
    found = dict(zip(("correctable", "uncorrectable", "pending", "failed"), map(number, rows), strict=True))
    found |= {} if banks is None else {"banks_low": number(banks.low), "banks_exhausted": number(banks.none)}
    return {f"remap_{name}": value for name, value in found.items()}


def _fabric(handle: Any) -> dict[str, Value]:
    """Whether the GPU has joined the NVLink fabric. Only what is completed has a status."""
    told = nvml.c_nvmlGpuFabricInfo_v2_t()
    if ask(nvml.nvmlDeviceGetGpuFabricInfoV, handle, byref(told)) is None:
        return {}
    state, mask = int(told.state), int(told.healthMask)
    done = state == _COMPLETED
    parts = [mask >> shift & 3 for shift in (0, 2, 4, 6)]  # bandwidth, route recovery, route health, access time-out recovery
    known = [part for part in parts if part]
    return {
        "fabric_state": number(state),
        "fabric_status": number(int(told.status)) if done else None,
        "fabric_degraded": int(_DEGRADED in known) if done and known else None,
    }


def _mig(handle: Any) -> dict[str, Value]:
    modes = ask(nvml.nvmlDeviceGetMigMode, handle)
    return {"mig_enabled": None if modes is None else number(modes[0])}
