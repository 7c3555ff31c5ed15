"""dcgm-exporter's names of GPUs (its default counters and those that are off by default). A GPU is known by its UUID, never by its index.

The energy is in mJ, clocks in MHz, memory in MiB, throttling in ns. `DCGM_FI_DEV_XID_ERRORS` is the last XID, which never goes back to 0,
and says nothing of when: it stays as it is, XIDs come from the kernel's log.
"""

from typing import Final

from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import GPU

_MHZ, _MIB = 1e6, float(1 << 20)
_BLANKS: Final = ((0x7FFFFFF0, 0x7FFFFFFF), (float(1 << 47), float((1 << 47) + 15)), (float(1 << 63) - 2048, float(1 << 63)))
"""DCGM's numbers for "blank", "not found", "not supported" and "no permission": of 32-bit, floating-point and 64-bit fields."""

DCGM: Final = (
    NameMap(
        "dcgm-exporter",
        GPU,
        {"uuid": ("{UUID}",), "node": ("{Hostname}", "{hostname}")},
        (
            Name("DCGM_FI_DEV_GPU_UTIL", "gpu.utilization", over=100),
            Name("DCGM_FI_DEV_MEM_COPY_UTIL", "gpu.memory.utilization", over=100),
            Name("DCGM_FI_DEV_ENC_UTIL", "gpu.encoder.utilization", over=100),
            Name("DCGM_FI_DEV_DEC_UTIL", "gpu.decoder.utilization", over=100),
            Name("DCGM_FI_DEV_FB_TOTAL", "gpu.memory.total", _MIB),
            Name("DCGM_FI_DEV_FB_RESERVED", "gpu.memory.reserved", _MIB),
            Name("DCGM_FI_DEV_FB_USED", "gpu.memory.used", _MIB),
            Name("DCGM_FI_DEV_FB_FREE", "gpu.memory.free", _MIB),
            Name("DCGM_FI_DEV_GPU_TEMP", "gpu.temperature"),
            Name("DCGM_FI_DEV_MEMORY_TEMP", "gpu.memory.temperature"),
            Name("DCGM_FI_DEV_POWER_USAGE", "gpu.power"),
            Name("DCGM_FI_DEV_POWER_MGMT_LIMIT", "gpu.power.limit"),
            Name("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "gpu.energy", over=1e3),
            Name("DCGM_FI_DEV_SM_CLOCK", "gpu.clock.sm", _MHZ),
            Name("DCGM_FI_DEV_MEM_CLOCK", "gpu.clock.memory", _MHZ),
            Name("DCGM_FI_DEV_POWER_VIOLATION", "gpu.throttle.power.time", over=1e9),
            Name("DCGM_FI_DEV_THERMAL_VIOLATION", "gpu.throttle.thermal.time", over=1e9),
            Name("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "gpu.pcie.replays"),
            Name("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "gpu.ecc.volatile.corrected"),
            Name("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "gpu.ecc.volatile.uncorrected"),
            Name("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "gpu.ecc.aggregate.corrected"),
            Name("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "gpu.ecc.aggregate.uncorrected"),
            Name("DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "gpu.remap.correctable"),
            Name("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "gpu.remap.uncorrectable"),
            Name("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gpu.remap.failed"),
            Name("DCGM_FI_DEV_ROW_REMAP_PENDING", "gpu.remap.pending"),
            Name("DCGM_FI_DEV_RETIRED_SBE", "gpu.retired.single_bit"),
            Name("DCGM_FI_DEV_RETIRED_DBE", "gpu.retired.double_bit"),
            Name("DCGM_FI_DEV_RETIRED_PENDING", "gpu.retired.pending"),
            Name("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gpu.activity.graphics"),
            Name("DCGM_FI_PROF_SM_ACTIVE", "gpu.activity.sm"),
            Name("DCGM_FI_PROF_SM_OCCUPANCY", "gpu.activity.occupancy"),
            Name("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gpu.activity.tensor"),
            Name("DCGM_FI_PROF_DRAM_ACTIVE", "gpu.activity.dram"),
            Name("DCGM_FI_PROF_PIPE_FP64_ACTIVE", "gpu.activity.fp64"),
            Name("DCGM_FI_PROF_PIPE_FP32_ACTIVE", "gpu.activity.fp32"),
            Name("DCGM_FI_PROF_PIPE_FP16_ACTIVE", "gpu.activity.fp16"),
        ),
        attributes={"model": ("{modelName}",), "pci": ("{pci_bus_id}",)},
        never={"GPU_I_ID": ".+"},  # a partition's readings are not its GPU's
        blanks=_BLANKS,
    ),
)
