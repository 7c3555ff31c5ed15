"""The fault catalogue: every fault Surefoot names, once, with its layer, its goal for detection and its first action.

A name is never reused. Faults whose detectors come later stand in `waiting.py`, so that names, drills, runbooks and
reports agree from the start. What shows an explicit fault is a row in `rules/`.
"""

from pipeline.catalog.fault import Fault as Fault
from pipeline.catalog.faults.communication import COLLECTIVE_HANG as COLLECTIVE_HANG
from pipeline.catalog.faults.communication import COMMUNICATION
from pipeline.catalog.faults.compute import COMPUTE
from pipeline.catalog.faults.compute import GPU_DRIVER_HANG as GPU_DRIVER_HANG
from pipeline.catalog.faults.compute import GPU_ECC_UNCORRECTABLE as GPU_ECC_UNCORRECTABLE
from pipeline.catalog.faults.compute import GPU_FELL_OFF_BUS as GPU_FELL_OFF_BUS
from pipeline.catalog.faults.compute import GPU_HBM_DEGRADING as GPU_HBM_DEGRADING
from pipeline.catalog.faults.compute import GPU_NVLINK_FAULT as GPU_NVLINK_FAULT
from pipeline.catalog.faults.compute import GPU_PCIE_DEGRADED as GPU_PCIE_DEGRADED
from pipeline.catalog.faults.compute import GPU_POWER_CAP as GPU_POWER_CAP
from pipeline.catalog.faults.compute import GPU_ROW_REMAP_PENDING as GPU_ROW_REMAP_PENDING
from pipeline.catalog.faults.compute import GPU_THERMAL_THROTTLE as GPU_THERMAL_THROTTLE
from pipeline.catalog.faults.framework import FRAMEWORK
from pipeline.catalog.faults.framework import LAUNCHER_LOST as LAUNCHER_LOST
from pipeline.catalog.faults.framework import NODE_LEFT as NODE_LEFT
from pipeline.catalog.faults.framework import RANK_CRASH as RANK_CRASH
from pipeline.catalog.faults.framework import RANK_STOPPED as RANK_STOPPED
from pipeline.catalog.faults.framework import STARTUP_FAILURE as STARTUP_FAILURE
from pipeline.catalog.faults.framework import TELEMETRY_LOST as TELEMETRY_LOST
from pipeline.catalog.faults.kernel import CLOCK_SKEW as CLOCK_SKEW
from pipeline.catalog.faults.kernel import CPU_CONTENTION as CPU_CONTENTION
from pipeline.catalog.faults.kernel import HOST_DOWN as HOST_DOWN
from pipeline.catalog.faults.kernel import HOST_OOM_KILL as HOST_OOM_KILL
from pipeline.catalog.faults.kernel import HUNG_TASK as HUNG_TASK
from pipeline.catalog.faults.kernel import KERNEL
from pipeline.catalog.faults.kernel import KERNEL_PANIC_REBOOT as KERNEL_PANIC_REBOOT
from pipeline.catalog.faults.kernel import MACHINE_CHECK as MACHINE_CHECK
from pipeline.catalog.faults.scheduler import NODE_NOT_READY as NODE_NOT_READY
from pipeline.catalog.faults.scheduler import PENDING_CAPACITY as PENDING_CAPACITY
from pipeline.catalog.faults.scheduler import PREEMPTED_OR_EVICTED as PREEMPTED_OR_EVICTED
from pipeline.catalog.faults.scheduler import RESTART_LOOP as RESTART_LOOP
from pipeline.catalog.faults.scheduler import SCHEDULER
from pipeline.catalog.faults.scheduler import VOLUME_ATTACH_FAILURE as VOLUME_ATTACH_FAILURE
from pipeline.catalog.faults.storage import CACHE_LAYER_FAULT as CACHE_LAYER_FAULT
from pipeline.catalog.faults.storage import CROSS_REGION_LAG as CROSS_REGION_LAG
from pipeline.catalog.faults.storage import DISK_FAILING as DISK_FAILING
from pipeline.catalog.faults.storage import FILESYSTEM_FULL as FILESYSTEM_FULL
from pipeline.catalog.faults.storage import FILESYSTEM_READ_ONLY as FILESYSTEM_READ_ONLY
from pipeline.catalog.faults.storage import MOUNT_HUNG as MOUNT_HUNG
from pipeline.catalog.faults.storage import MOUNT_STALE_OR_GONE as MOUNT_STALE_OR_GONE
from pipeline.catalog.faults.storage import STORAGE
from pipeline.catalog.faults.waiting import WAITING as WAITING
from pipeline.catalog.faults.workload import GPU_ILLEGAL_ACCESS as GPU_ILLEGAL_ACCESS
from pipeline.catalog.faults.workload import WORKLOAD

FAULTS: tuple[Fault, ...] = (*COMMUNICATION, *COMPUTE, *FRAMEWORK, *KERNEL, *SCHEDULER, *STORAGE, *WORKLOAD, *WAITING)
BY_NAME: dict[str, Fault] = {f.name: f for f in FAULTS}
