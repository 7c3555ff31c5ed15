"""What shows the explicit faults of the kernel and the machine."""

from pipeline.catalog.events import OOM_KILL
from pipeline.catalog.faults import CPU_CONTENTION, HOST_OOM_KILL, KERNEL_PANIC_REBOOT
from pipeline.catalog.rule import Happened, Hold, Limit, Rule, Scope, View, metric

KERNEL: tuple[Rule, ...] = (
    Rule(
        fault=HOST_OOM_KILL,
        when=Happened(OOM_KILL, code="cgroup"),
        says="{count} killed for want of memory{message}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
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
)
