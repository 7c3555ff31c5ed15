"""What a vendor's reader gives of an accelerator. Units are base units; None is absent. Fields are named after what they are."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

Value = float | int | None


class Lost(OSError):
    """The driver no longer reaches the device."""


class NoDriver(OSError):
    """The driver is not loaded, or another one than its library was made for."""


@dataclass(frozen=True, slots=True)
class Device:
    """Which accelerator. `pci` is normal (`sources.pci`); `index` is the driver's, and may be another one after the next loss or boot."""

    uuid: str
    pci: str
    index: str = ""
    vendor: str = ""
    model: str = ""
    serial: str = ""
    driver: str = ""
    vbios: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A device that the driver lists; `handle` is what its reader needs to read it."""

    device: Device
    handle: Any


@dataclass(frozen=True, slots=True)
class Roll:
    """The devices that the driver lists and names, and those that should be there by what it says elsewhere."""

    found: Sequence[Found]
    expected: Sequence[Device] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another accelerator. `speed` is bytes a second."""

    number: int
    up: Value = None
    speed: Value = None
    replays: Value = None
    recoveries: Value = None
    recoveries_failed: Value = None
    crc_errors: Value = None
    ecc_errors: Value = None
    symbol_errors: Value = None
    effective_errors: Value = None
    receive_errors: Value = None
    sent: Value = None
    received: Value = None


@dataclass(frozen=True, slots=True)
class Partition:
    """A part of the accelerator that is a device of its own. `name` tells it from the others; `instance` is what it is called there."""

    name: str
    instance: str = ""
    memory_total: Value = None
    memory_reserved: Value = None
    memory_used: Value = None


@dataclass(frozen=True, slots=True)
class User:
    """A process on the accelerator."""

    pid: int
    memory: Value = None


@dataclass(frozen=True, slots=True)
class State:
    """How an accelerator is."""

    utilization: Value = None
    memory_utilization: Value = None
    encoder_utilization: Value = None
    decoder_utilization: Value = None
    memory_total: Value = None
    memory_reserved: Value = None
    memory_used: Value = None
    memory_free: Value = None
    temperature: Value = None
    memory_temperature: Value = None
    temperature_slowdown: Value = None
    fan: Value = None
    power: Value = None
    power_limit: Value = None
    energy: Value = None
    performance_state: Value = None
    clock_sm: Value = None
    clock_sm_max: Value = None
    clock_memory: Value = None
    clock_memory_max: Value = None
    throttle_idle: Value = None
    throttle_application_clocks: Value = None
    throttle_sw_power_cap: Value = None
    throttle_hw_slowdown: Value = None
    throttle_sync_boost: Value = None
    throttle_sw_thermal: Value = None
    throttle_hw_thermal: Value = None
    throttle_hw_power_brake: Value = None
    throttle_power_time: Value = None
    throttle_thermal_time: Value = None
    pcie_width: Value = None
    pcie_width_max: Value = None
    pcie_generation: Value = None
    pcie_generation_max: Value = None
    pcie_replays: Value = None
    pcie_correctable_errors: Value = None
    pcie_nonfatal_errors: Value = None
    pcie_fatal_errors: Value = None
    pcie_sent: Value = None
    pcie_received: Value = None
    ecc_enabled: Value = None
    ecc_volatile_corrected: Value = None
    ecc_volatile_uncorrected: Value = None
    ecc_aggregate_corrected: Value = None
    ecc_aggregate_uncorrected: Value = None
    ecc_volatile_dram_corrected: Value = None
    ecc_volatile_dram_uncorrected: Value = None
    ecc_volatile_sram_corrected: Value = None
    ecc_volatile_sram_uncorrected: Value = None
    ecc_aggregate_dram_corrected: Value = None
    ecc_aggregate_dram_uncorrected: Value = None
    ecc_aggregate_sram_corrected: Value = None
    ecc_aggregate_sram_uncorrected: Value = None
    remap_correctable: Value = None
    remap_uncorrectable: Value = None
    remap_pending: Value = None
    remap_failed: Value = None
    remap_banks_low: Value = None
    remap_banks_exhausted: Value = None
    retired_single_bit: Value = None
    retired_double_bit: Value = None
    retired_pending: Value = None
    recovery_action: Value = None
    fabric_state: Value = None
    fabric_status: Value = None
    fabric_degraded: Value = None
    nvlink_sent: Value = None
    nvlink_received: Value = None
    mig_enabled: Value = None
    processes: Value = None
    binding_mismatch: Value = None
    activity_graphics: Value = None
    activity_sm: Value = None
    activity_occupancy: Value = None
    activity_tensor: Value = None
    activity_dram: Value = None
    activity_fp64: Value = None
    activity_fp32: Value = None
    activity_fp16: Value = None


STATE_FIELDS = frozenset(field.name for field in fields(State))


@dataclass(frozen=True, slots=True)
class Seen:
    """All that one reading of a device gave."""

    state: State
    links: Sequence[Link] = ()
    partitions: Sequence[Partition] = ()
    users: Sequence[User] = ()


class Driver(Protocol):
    """A vendor's driver. Calls may hang; no two calls are made for one device at a time, and no `roll` during another one."""

    def roll(self, *, renew: bool, hanging: Collection[str]) -> Roll:
        """The devices. `renew`: no other call is under way, and what the driver has lost may be looked for anew. `hanging`: indices
        of devices that are not to be asked for, since a call for them hangs already; they are as they were. Raises OSError."""
        ...

    @property
    def asking(self) -> str:
        """The index of the device that `roll` is asking for now, "" for none."""
        ...

    def read(self, found: Found) -> Seen:
        """How the device is. Raises Lost where the driver has lost it, OSError where it cannot be said."""
        ...
