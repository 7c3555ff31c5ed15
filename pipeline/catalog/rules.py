"""What shows an explicit fault, a row each: the condition, how long it must hold, and when it is over. `fault_rule` reads this table.

A new explicit fault is a row here, its fault in `faults.py` and its runbook: no code. A fault may have several rows; it is there
while one of them says so, and over when none does. Limits come in pairs, so that a value that trembles at one opens nothing twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from pipeline.catalog.events import OOM_KILL, EventKind
from pipeline.catalog.fault import Fault
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.faults import (
    CPU_CONTENTION,
    FILESYSTEM_FULL,
    FILESYSTEM_READ_ONLY,
    HOST_OOM_KILL,
    KERNEL_PANIC_REBOOT,
    MOUNT_HUNG,
    MOUNT_STALE_OR_GONE,
    RESTART_LOOP,
)
from pipeline.catalog.metrics import BY_NAME, CGROUP, HOST, MOUNT, Family, Metric


class View(StrEnum):
    """What of a metric is compared."""

    LEVEL = "level"  # the value, or its ratio to another metric
    INCREASE = "increase"  # since the reading before; of a counter that began anew, its value
    RATE = "rate"  # the increase a second; not over a gap
    RESET = "reset"  # 1 where it is less than at the reading before, else 0


class Scope(StrEnum):
    """Where a rule applies."""

    ANYWHERE = "anywhere"
    RUN = "run"  # on a node of a run in progress
    CHECKPOINTS = "checkpoints"  # on the mount that the checkpoints of a run in progress lie on: the run is hit


RANK: Final = "rank"  # the label that names a rank, in an event


@dataclass(frozen=True, slots=True)
class Hold:
    """How long: `readings` in a row, spanning `seconds` in which readings came (a gap counts for nothing)."""

    readings: int = 1
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Limit:
    """A condition on a metric: bad from `bad` on, good again from `good` on, upwards or downwards as the two lie.

    Where both are equal, what is not bad is good. `of` makes it a ratio.
    """

    metric: Metric
    bad: float
    good: float
    above: bool = True  # whether bad lies above good
    of: Metric | None = None
    view: View = View.LEVEL

    def says(self, value: float) -> bool | None:
        """True: bad; False: good; None: between the two limits."""
        bad, good = (self.bad, self.good) if self.above else (-self.bad, -self.good)
        value = value if self.above else -value
        if value >= bad:
            return True
        return False if value <= good or bad == good else None


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of `kind` (with `code`, where one is given), `times` of them `within` seconds."""

    kind: EventKind
    code: str = ""
    times: int = 1
    within: float = 0.0


@dataclass(frozen=True, slots=True)
class Missing:
    """A device of `family` is no longer there, while its node goes on telling of the others."""

    family: Family


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A row. Of several limits all must be bad; one that is good is enough for good.

    `entity` is the label that names what is hit, "" where that is the node; of a rank the run is hit, too. `says` and `cleared`
    are words for people, filled from the readings: {mount_free} is `mount.free`, {value} the first limit's, {place} the entity,
    {held} for how long, {growth} how fast.
    """

    fault: Fault
    when: tuple[Limit, ...] | Happened | Missing
    says: str
    cleared: str
    hold: Hold = Hold()
    clear: Hold = Hold()
    entity: str = ""
    scope: Scope = Scope.ANYWHERE
    turned: bool = False  # only where it was seen good before: what has been so for ever is no fault
    never: Mapping[str, str] = field(default_factory=dict)  # label -> pattern of those that the rule leaves alone

    @property
    def names_run(self) -> bool:
        """Whether what it finds is a run's, not the node's own."""
        return self.scope is Scope.CHECKPOINTS or self.entity == RANK

    @property
    def family(self) -> Family:
        """Whose readings it looks at; of an event the node's own, by which its agent is heard."""
        if isinstance(self.when, Missing):
            return self.when.family
        return BY_NAME[self.when[0].metric.name][0] if isinstance(self.when, tuple) else HOST


# Places of the machine itself and of containers' plumbing (a container's /etc/hosts), removable and image mounts.
_PLUMBING: Final = r"/(etc|proc|sys|boot|efi|snap|media|cdrom)(/.*)?|/dev(/(?!shm$).*)?|/run/.*|.*/(secrets|kubernetes\.io~.*)(/.*)?"
_IMAGES: Final = r"iso9660|udf|squashfs|erofs|cramfs|romfs|ramfs|fuse\.(portal|gvfsd-fuse|lxcfs)"
_REAL: Final = {"mount_point": _PLUMBING, "type": _IMAGES}
_WRITABLE: Final = Limit(BY_NAME["mount.read_only"][1], 0, 1, above=False)


def _metric(name: str) -> Metric:
    return BY_NAME[name][1]


RULES: tuple[Rule, ...] = (
    Rule(
        fault=FILESYSTEM_FULL,
        when=(
            Limit(_metric("mount.free"), 0.02, 0.05, above=False, of=_metric("mount.size")),
            Limit(_metric("mount.free"), 1e12, 1.5e12, above=False),  # 2 % of a petabyte is room for many checkpoints
            _WRITABLE,
        ),
        says="{place} is full: {mount_free} of {mount_size} free{growth}",
        cleared="{place} has {mount_free} of {mount_size} free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=FILESYSTEM_FULL,
        when=(Limit(_metric("mount.inodes_free"), 0.02, 0.05, above=False, of=_metric("mount.inodes")), _WRITABLE),
        says="{place} has no inodes left: {mount_inodes_free} of {mount_inodes} free{growth}",
        cleared="{place} has {mount_inodes_free} of {mount_inodes} inodes free",
        hold=Hold(2, 0.5),
        clear=Hold(2, 0.5),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=FILESYSTEM_READ_ONLY,
        when=(Limit(_metric("mount.read_only"), 1, 0),),
        says="{place}, where the run's checkpoints lie, is read-only",
        cleared="{place} can be written again",
        clear=Hold(2),
        entity="mount_point",
        scope=Scope.CHECKPOINTS,
    ),
    Rule(
        fault=FILESYSTEM_READ_ONLY,
        when=(Limit(_metric("mount.read_only"), 1, 0),),
        says="{place} was writable and is read-only now",
        cleared="{place} can be written again",
        clear=Hold(2),
        entity="mount_point",
        turned=True,
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_HUNG,
        when=(Limit(_metric("mount.probe.ok"), 0, 1, above=False), Limit(_metric("mount.probe.time"), 1.5, 1)),
        says="{place} has not answered for {mount_probe_time}",
        cleared="{place} answers again, within {mount_probe_time}",
        hold=Hold(2),
        clear=Hold(2),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=(Limit(_metric("mount.probe.ok"), 0, 1, above=False), Limit(_metric("mount.probe.time"), 1, 1.5, above=False)),
        says="{place} answers with an error: it is stale, or what it was mounted from is gone",
        cleared="{place} answers again",
        hold=Hold(2, 5),
        clear=Hold(2),
        entity="mount_point",
        never=_REAL,
    ),
    Rule(
        fault=MOUNT_STALE_OR_GONE,
        when=Missing(MOUNT),
        says="{place}, where the run's checkpoints lie, is no longer mounted",
        cleared="{place} is mounted again",
        entity="mount_point",
        scope=Scope.CHECKPOINTS,
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
        when=Happened(OOM_KILL, code="node"),
        says="{count} killed for want of memory{message}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
        scope=Scope.RUN,
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=(Limit(_metric("cgroup.oom_kills"), 1, 0, view=View.INCREASE),),
        says="{value} killed for want of memory in {cgroup}, the control group of run {run}",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
    ),
    Rule(
        fault=HOST_OOM_KILL,
        when=(Limit(_metric("host.oom_kills"), 1, 0, view=View.INCREASE),),
        says="{value} killed for want of memory",
        cleared="nothing more was killed for want of memory",
        clear=Hold(2, 5),
        scope=Scope.RUN,
    ),
    Rule(
        fault=KERNEL_PANIC_REBOOT,
        when=(
            Limit(_metric("host.boot"), 5, 5, view=View.INCREASE),
            Limit(_metric("host.cpu.busy"), 1, 0, view=View.RESET),  # a clock that steps moves the time of boot, and no counter
        ),
        says="the node was started anew at {host_boot}",
        cleared="the node has been up since {host_boot}",
        clear=Hold(3, 20),
        scope=Scope.RUN,
    ),
    Rule(
        fault=CPU_CONTENTION,
        when=(
            Limit(_metric("host.pressure.cpu.some"), 0.9, 0.5, view=View.RATE),
            Limit(_metric("host.load1"), 2, 1.5, of=_metric("host.cpu.count")),
            Limit(_metric("host.cpu.count"), 8, 8),  # a machine with fewer is always contended, and no GPU node
        ),
        says="tasks waited for a processor {value} of the time, run queue {host_load1} on {host_cpu_count} processors",
        cleared="tasks wait for a processor {value} of the time",
        hold=Hold(4, 30),
        clear=Hold(3, 20),
        scope=Scope.RUN,
    ),
)

FAMILIES: tuple[Family, ...] = (HOST, MOUNT, CGROUP)
"""The families that rules look at: those that `pipeline/queries/readings_since.sql` reads."""


def rules_of(fault: Fault) -> tuple[Rule, ...]:
    """The rows that show `fault`."""
    return tuple(rule for rule in RULES if rule.fault is fault)


OF_NODES: frozenset[str] = frozenset(rule.fault.name for rule in RULES if rule.entity != RANK)
"""The faults that are a node's own. An incident of one names an attempt only where that attempt failed by it."""


def acts(fault: str, attempt: str) -> bool:
    """Whether there is something for Surefoot to do about an incident of `fault` that names `attempt`; "" where it names none."""
    known = FAULTS.get(fault)
    return known is None or known.first_action is not None or bool(attempt and fault in OF_NODES)


def halts(fault: str, attempt: str) -> bool:
    """Whether such an incident takes its run's time. Of a fault without an action the run goes on meanwhile, and loses nothing by it.

    A restart loop is what a failure becomes that no action could help: the run stood still all the same.
    """
    return fault == RESTART_LOOP.name or acts(fault, attempt)
