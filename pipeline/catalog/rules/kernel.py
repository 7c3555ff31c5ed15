"""What shows the explicit faults of the kernel and the machine."""

from typing import Final

from pipeline.catalog.events import CLOCK_SKEWED, KERNEL_CRASHED, KERNEL_OOPS, OOM_KILL, OOM_VICTIM, REMOUNTED_READ_ONLY, THERMAL
from pipeline.catalog.events import HUNG_TASK as HUNG_TASK_SEEN
from pipeline.catalog.events import MACHINE_CHECK as MACHINE_CHECK_SEEN
from pipeline.catalog.faults import (
    CLOCK_SKEW,
    CPU_CONTENTION,
    FILESYSTEM_READ_ONLY,
    HOST_OOM_KILL,
    HUNG_TASK,
    KERNEL_PANIC_REBOOT,
    MACHINE_CHECK,
)
from pipeline.catalog.rule import Happened, Hold, Limit, Rule, Scope, View, metric

_QUIET: Final = Hold(2, 55)  # a hung task is told of every two minutes at most; what hangs longer than a run bears, the run tells

KERNEL: tuple[Rule, ...] = (
    Rule(
        fault=HOST_OOM_KILL,
        when=Happened(OOM_VICTIM, codes=frozenset({"rank", "child"})),
        says="process {pid} ({comm}) of rank {rank} of run {run} was killed for want of memory",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=Happened(OOM_KILL, code="cgroup"),
        says="{count} killed for want of memory{message}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=Happened(OOM_VICTIM, code="node"),
        says="process {pid} ({comm}) was killed for want of memory",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
        scope=Scope.RUN,
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=Happened(OOM_KILL, code="node"),
        says="{count} killed for want of memory{message}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
        scope=Scope.RUN,
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=(Limit(metric("cgroup.oom_kills"), 1, 0, view=View.INCREASE),),
        says="{value} killed for want of memory in {cgroup}, the control group of run {run}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=(Limit(metric("host.oom_kills"), 1, 0, view=View.INCREASE),),
        says="{value} killed for want of memory",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
        scope=Scope.RUN,
    ),
    Rule(
        fault=KERNEL_PANIC_REBOOT,
        when=Happened(KERNEL_CRASHED, code="panic"),
        says="the kernel gave up before the node was started anew{message}",
        cleared="the node tells of itself again",
        clear=Hold(3, 20),
    ),
    Rule(
        fault=KERNEL_PANIC_REBOOT,
        when=(
            Limit(metric("host.boot"), 5, 5, view=View.INCREASE),
            Limit(metric("host.cpu.busy"), 1, 0, view=View.RESET),  # a clock that steps moves the time of boot, and no counter
        ),
        says="the node was started anew at {host_boot}",
        cleared="the node has been up since {host_boot}",
        clear=Hold(3, 20),
        scope=Scope.RUN,
    ),
    Rule(
        fault=CPU_CONTENTION,
        when=(
            Limit(metric("host.pressure.cpu.some"), 0.9, 0.5, view=View.RATE),
            Limit(metric("host.load1"), 2, 1.5, of=metric("host.cpu.count")),
            Limit(metric("host.cpu.count"), 8, 8),  # a machine with fewer is always contended, and no GPU node
        ),
        says="tasks waited for a processor {value} of the time, run queue {host_load1} on {host_cpu_count} processors",
        cleared="tasks wait for a processor {value} of the time",
        hold=Hold(4, 30),
        clear=Hold(3, 20),
        scope=Scope.RUN,
    ),
    Rule(
        fault=KERNEL_PANIC_REBOOT,
        when=Happened(KERNEL_OOPS, code="panic"),
        says="the kernel gave up{message}",
        cleared="the node tells of itself again",
        clear=Hold(3, 20),
    ),
    Rule(
        fault=HUNG_TASK,
        when=Happened(HUNG_TASK_SEEN),
        says="something hangs in the kernel ({code}){message}",
        cleared="nothing more was seen to hang for a minute",
        clear=_QUIET,
    ),
    Rule(
        fault=MACHINE_CHECK,
        when=Happened(MACHINE_CHECK_SEEN, code="uncorrected"),
        says="the hardware reported an error that it could not correct{message}",
        cleared="no such error for a minute",
        clear=_QUIET,
    ),
    Rule(
        fault=MACHINE_CHECK,
        when=Happened(MACHINE_CHECK_SEEN, codes=frozenset({"corrected", "reported"}), times=10, within=600),
        says="the hardware reported ten errors within ten minutes, the last of them{message}",
        cleared="no such error for a minute",
        clear=_QUIET,
    ),
    Rule(
        fault=MACHINE_CHECK,
        when=Happened(THERMAL, codes=frozenset({"cpu", "zone"})),
        says="a processor is too hot and was slowed{message}",
        cleared="nothing was too hot for a minute",
        clear=_QUIET,
    ),
    Rule(
        fault=FILESYSTEM_READ_ONLY,
        when=Happened(REMOUNTED_READ_ONLY),
        says="{place} made itself read-only{message}",
        cleared="{place} can be written again",
        clear=Hold(2),
        entity="mount_point",
    ),
    Rule(
        fault=CLOCK_SKEW,
        when=Happened(CLOCK_SKEWED),
        says="the node's clock is {offset} s {code} of ingest's",
        cleared="the node's clock agrees with ingest's",
        clear=Hold(3, 40),
    ),
)
