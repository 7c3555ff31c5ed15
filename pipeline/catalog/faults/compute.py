"""Faults of the layer compute that something finds."""

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

GPU_FELL_OFF_BUS = Fault(
    "gpu_fell_off_bus",
    Layer.COMPUTE,
    Severity.CRITICAL,
    2,
    None,
    "A GPU is gone from the bus",
    "exclude node, restart; reboot, then inspection",
)
GPU_ECC_UNCORRECTABLE = Fault(
    "gpu_ecc_uncorrectable",
    Layer.COMPUTE,
    Severity.CRITICAL,
    10,
    None,
    "A GPU's memory failed",
    "exclude node; reset GPU when idle; RMA on remap failure",
)
GPU_ROW_REMAP_PENDING = Fault(
    "gpu_row_remap_pending",
    Layer.COMPUTE,
    Severity.WARNING,
    10,
    None,
    "A GPU waits to remap memory rows",
    "reset GPU when idle; drain after checkpoint",
)
GPU_HBM_DEGRADING = Fault(
    "gpu_hbm_degrading",
    Layer.COMPUTE,
    Severity.WARNING,
    10,
    None,
    "A GPU's memory errors grow",
    "watch; drain after checkpoint",
)
GPU_NVLINK_FAULT = Fault(
    "gpu_nvlink_fault",
    Layer.COMPUTE,
    Severity.CRITICAL,
    10,
    None,
    "A link between GPUs failed",
    "exclude node",
)
GPU_PCIE_DEGRADED = Fault(
    "gpu_pcie_degraded",
    Layer.COMPUTE,
    Severity.ERROR,
    10,
    None,
    "A GPU's bus link is slower than it can be",
    "drain after checkpoint",
)
GPU_THERMAL_THROTTLE = Fault(
    "gpu_thermal_throttle",
    Layer.COMPUTE,
    Severity.ERROR,
    10,
    None,
    "A GPU is slowed by heat",
    "watch; facility ticket; exclude if the run is slowed",
)
GPU_POWER_CAP = Fault(
    "gpu_power_cap",
    Layer.COMPUTE,
    Severity.ERROR,
    10,
    None,
    "A GPU is slowed by its power limit",
    "watch; facility ticket; exclude if the run is slowed",
)
GPU_DRIVER_HANG = Fault(
    "gpu_driver_hang",
    Layer.COMPUTE,
    Severity.CRITICAL,
    10,
    None,
    "A GPU's driver does not answer",
    "exclude node; reboot",
)

COMPUTE: tuple[Fault, ...] = (
    GPU_FELL_OFF_BUS,
    GPU_ECC_UNCORRECTABLE,
    GPU_ROW_REMAP_PENDING,
    GPU_HBM_DEGRADING,
    GPU_NVLINK_FAULT,
    GPU_PCIE_DEGRADED,
    GPU_THERMAL_THROTTLE,
    GPU_POWER_CAP,
    GPU_DRIVER_HANG,
)
