"""What shows the explicit faults of GPUs, from what their driver tells. What the kernel log says of them has rows of its own."""

from typing import Final

from pipeline.catalog.events import GPU_INIT_FAILED, GPU_LOST, PCIE_ERROR
from pipeline.catalog.faults import (
    GPU_DRIVER_HANG,
    GPU_ECC_UNCORRECTABLE,
    GPU_FELL_OFF_BUS,
    GPU_HBM_DEGRADING,
    GPU_NVLINK_FAULT,
    GPU_PCIE_DEGRADED,
    GPU_POWER_CAP,
    GPU_ROW_REMAP_PENDING,
    GPU_THERMAL_THROTTLE,
)
from pipeline.catalog.rule import Happened, Hold, Limit, Rule, Scope, View, metric

_UUID: Final = "uuid"
_QUIET: Final = Hold(2, 55)  # of what the kernel's log tells once
_BUSY: Final = Limit(metric("gpu.utilization"), 0.3, 0.05)  # an idle GPU lowers its bus and its clocks, and is well


def _bus_error(when: Limit | Happened, says: str) -> Rule:
    return Rule(
        fault=GPU_PCIE_DEGRADED,
        when=when if isinstance(when, Happened) else (when,),
        says=says,
        cleared="no more errors on the bus of GPU {place} for a minute",
        clear=_QUIET,
        entity=_UUID,
    )


_BUS_ERRORS: Final = (
    _bus_error(
        Happened(PCIE_ERROR, codes=frozenset({"nonfatal", "fatal"})),
        "the bus of GPU {place} at {pci} had an error that could not be corrected{message}",
    ),
    _bus_error(
        Happened(PCIE_ERROR, code="corrected", times=10, within=600),
        "errors are corrected on the bus of GPU {place} at {pci}, ten within ten minutes, the last of them{message}",
    ),
    _bus_error(
        Limit(metric("gpu.pcie.nonfatal_errors"), 1, 0, view=View.INCREASE),
        "{value} more errors on the bus of GPU {place} at {pci} that could not be corrected",
    ),
    _bus_error(
        Limit(metric("gpu.pcie.fatal_errors"), 1, 0, view=View.INCREASE),
        "{value} more fatal errors on the bus of GPU {place} at {pci}",
    ),
)

COMPUTE: tuple[Rule, ...] = (
    Rule(
        fault=GPU_FELL_OFF_BUS,
        when=Happened(GPU_LOST),
        says="GPU {place} is lost{message}",
        cleared="GPU {place} was not lost again",
        clear=Hold(2, 5),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_FELL_OFF_BUS,
        when=(Limit(metric("gpu.up"), 0, 1, above=False),),
        says="the driver no longer reaches GPU {place} at {pci}",
        cleared="the driver reaches GPU {place} again",
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_FELL_OFF_BUS,
        when=Happened(GPU_INIT_FAILED),
        says="the driver could not start GPU {place} at {pci}{message}",
        cleared="no more was told of GPU {place} for a minute",
        clear=_QUIET,
        entity=_UUID,
    ),
    Rule(
        fault=GPU_ECC_UNCORRECTABLE,
        when=(Limit(metric("gpu.ecc.volatile.uncorrected"), 1, 0, view=View.INCREASE),),
        says="{value} more memory errors that could not be corrected on GPU {place} at {pci}",
        cleared="no more memory errors on GPU {place}",
        clear=Hold(3, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_ECC_UNCORRECTABLE,
        when=(Limit(metric("gpu.ecc.aggregate.uncorrected"), 1, 0, view=View.INCREASE),),
        says="{value} more memory errors that could not be corrected on GPU {place} at {pci}",
        cleared="no more memory errors on GPU {place}",
        clear=Hold(3, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_ECC_UNCORRECTABLE,
        when=(Limit(metric("gpu.remap.failed"), 1, 0),),
        says="GPU {place} at {pci} could not remap a failed memory row: it is to be replaced",
        cleared="GPU {place} has no failed remapping",
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_ROW_REMAP_PENDING,
        when=(Limit(metric("gpu.remap.pending"), 1, 0),),
        says="GPU {place} at {pci} waits for a reset to remap memory rows",
        cleared="GPU {place} has no memory rows to remap",
        hold=Hold(2),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_ROW_REMAP_PENDING,
        when=(Limit(metric("gpu.retired.pending"), 1, 0),),
        says="GPU {place} at {pci} waits for a restart to retire memory pages",
        cleared="GPU {place} has no memory pages to retire",
        hold=Hold(2),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_HBM_DEGRADING,
        when=(Limit(metric("gpu.ecc.volatile.corrected"), 0.1, 0.01, view=View.RATE),),  # six a minute, kept up
        says="memory errors are corrected all the time on GPU {place} at {pci}, {gpu_ecc_volatile_corrected} since its driver was loaded",
        cleared="few memory errors are corrected on GPU {place}",
        hold=Hold(3, 7),
        clear=Hold(6, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_HBM_DEGRADING,
        when=(Limit(metric("gpu.remap.banks_exhausted"), 1, 0),),
        says="{value} memory banks of GPU {place} at {pci} have no spare row left",
        cleared="all memory banks of GPU {place} have spare rows",
        hold=Hold(2),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu_link.up"), 0, 1, above=False),),
        says="NVLink {link} of GPU {place} was active and is down",
        cleared="NVLink {link} of GPU {place} is active",
        hold=Hold(3, 7),  # links are down for a moment after a boot or reset
        clear=Hold(2),
        entity=_UUID,
        turned=True,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu_link.recoveries_failed"), 1, 0, view=View.INCREASE),),
        says="NVLink {link} of GPU {place} could not be trained again",
        cleared="NVLink {link} of GPU {place} has been well",
        clear=Hold(3, 30),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu_link.recoveries"), 0.05, 0.01, view=View.RATE),),  # thrice a minute, each stops the traffic
        says="NVLink {link} of GPU {place} is trained again all the time, {gpu_link_recoveries} times so far",
        cleared="NVLink {link} of GPU {place} is steady",
        hold=Hold(2, 3),
        clear=Hold(6, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu_link.crc_errors"), 100, 10, view=View.RATE),),
        says="NVLink {link} of GPU {place} receives damaged packets, {gpu_link_crc_errors} so far",
        cleared="NVLink {link} of GPU {place} receives whole packets",
        hold=Hold(3, 7),
        clear=Hold(6, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu_link.replays"), 100, 10, view=View.RATE),),
        says="NVLink {link} of GPU {place} sends packets again, {gpu_link_replays} so far",
        cleared="NVLink {link} of GPU {place} sends packets once",
        hold=Hold(3, 7),
        clear=Hold(6, 60),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu.fabric.status"), 1, 0),),
        says="GPU {place} could not join the NVLink fabric: error {value}",
        cleared="GPU {place} has joined the NVLink fabric",
        hold=Hold(3, 7),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=(Limit(metric("gpu.fabric.degraded"), 1, 0),),
        says="the NVLink fabric of GPU {place} is not whole",
        cleared="the NVLink fabric of GPU {place} is whole",
        hold=Hold(3, 7),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_PCIE_DEGRADED,
        when=(Limit(metric("gpu.pcie.width"), 0.5, 1, above=False, of=metric("gpu.pcie.width.max")), _BUSY),
        says="GPU {place} at {pci} works with {gpu_pcie_width} of {gpu_pcie_width_max} bus lanes",
        cleared="GPU {place} has {gpu_pcie_width} of {gpu_pcie_width_max} bus lanes",
        hold=Hold(2, 3),
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_PCIE_DEGRADED,
        when=(Limit(metric("gpu.pcie.generation"), 0.8, 1, above=False, of=metric("gpu.pcie.generation.max")), _BUSY),
        says="GPU {place} at {pci} works with bus generation {gpu_pcie_generation} of {gpu_pcie_generation_max}",
        cleared="GPU {place} has bus generation {gpu_pcie_generation} of {gpu_pcie_generation_max}",
        hold=Hold(3, 7),  # it rises within a second or two of the load
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_PCIE_DEGRADED,
        when=(Limit(metric("gpu.pcie.replays"), 1, 0.1, view=View.RATE),),
        says="packets are sent again all the time on the bus of GPU {place} at {pci}, {gpu_pcie_replays} so far",
        cleared="packets are sent once on the bus of GPU {place}",
        hold=Hold(3, 7),
        clear=Hold(6, 60),
        entity=_UUID,
    ),
    *_BUS_ERRORS,
    Rule(
        fault=GPU_THERMAL_THROTTLE,
        when=(Limit(metric("gpu.throttle.hw_thermal"), 1, 0),),
        says="GPU {place} at {pci} slows itself down for heat, at {gpu_temperature} °C",
        cleared="GPU {place} is not slowed by heat, at {gpu_temperature} °C",
        hold=Hold(2, 3),
        clear=Hold(3, 10),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_THERMAL_THROTTLE,
        when=(Limit(metric("gpu.throttle.sw_thermal"), 1, 0),),
        says="GPU {place} at {pci} is slowed down for heat, at {gpu_temperature} °C",
        cleared="GPU {place} is not slowed by heat, at {gpu_temperature} °C",
        hold=Hold(2, 3),
        clear=Hold(3, 10),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_THERMAL_THROTTLE,
        when=(Limit(metric("gpu.temperature"), 1, 0.96, of=metric("gpu.temperature.slowdown")),),
        says="GPU {place} at {pci} is at {gpu_temperature} °C, and slows down from {gpu_temperature_slowdown} °C on",
        cleared="GPU {place} is at {gpu_temperature} °C",
        hold=Hold(2, 3),
        clear=Hold(3, 10),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_POWER_CAP,
        when=(Limit(metric("gpu.throttle.hw_power_brake"), 1, 0),),
        says="the machine's power supply slows GPU {place} at {pci} down",
        cleared="the machine's power supply does not slow GPU {place} down",
        hold=Hold(2, 3),
        clear=Hold(3, 10),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_POWER_CAP,
        when=(
            # Under load every GPU keeps to its power limit: only clocks far below what it can say that the limit is wrong.
            Limit(metric("gpu.clock.sm"), 0.5, 0.6, above=False, of=metric("gpu.clock.sm.max")),
            Limit(metric("gpu.throttle.sw_power_cap"), 1, 0),
            _BUSY,
        ),
        says="GPU {place} at {pci} runs at {value} of its clock to keep to {gpu_power_limit} W",
        cleared="GPU {place} runs at its clock",
        hold=Hold(2, 3),
        clear=Hold(3, 10),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_DRIVER_HANG,
        # A driver with one lock for all its GPUs is slow now and then; what hangs is still waited for at the next look.
        when=(Limit(metric("gpu.probe_hung"), 1, 0), Limit(metric("gpu.probe.time"), 3.5, 3)),
        says="the driver has not answered for GPU {place} at {pci} for {gpu_probe_time}",
        cleared="the driver answers for GPU {place} again",
        clear=Hold(2),
        entity=_UUID,
    ),
    Rule(
        fault=GPU_DRIVER_HANG,
        when=(Limit(metric("agent.collect.ok"), 0, 1, above=False),),
        says="the driver of the GPUs on {place} cannot be asked any more: nobody knows how they are",
        cleared="the driver of the GPUs on {place} answers again",
        hold=Hold(2),
        clear=Hold(2),
        scope=Scope.RUN,  # without one somebody may be changing the driver
        turned=True,
        never={"collector": "(?!gpu$).*"},
    ),
)
