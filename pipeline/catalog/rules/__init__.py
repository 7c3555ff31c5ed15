"""What shows an explicit fault, a row each, by layer. `fault_rule` reads this table.

A new explicit fault is a row here, its fault in `faults/` and its runbook: no code. A fault may have several rows; it is there
while one of them says so, and over when none does. Limits come in pairs, so that a value that trembles at one opens nothing twice.
"""

from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.faults import RESTART_LOOP, Fault
from pipeline.catalog.metrics import AGENT, HOST, MOUNT, Family
from pipeline.catalog.metrics import FAMILIES as EVERY
from pipeline.catalog.rule import RANK as RANK
from pipeline.catalog.rule import Happened as Happened
from pipeline.catalog.rule import Hold as Hold
from pipeline.catalog.rule import Limit as Limit
from pipeline.catalog.rule import Missing as Missing
from pipeline.catalog.rule import Rule as Rule
from pipeline.catalog.rule import Scope as Scope
from pipeline.catalog.rule import View as View
from pipeline.catalog.rules.caches import CACHES
from pipeline.catalog.rules.communication import COMMUNICATION
from pipeline.catalog.rules.compute import COMPUTE
from pipeline.catalog.rules.kernel import KERNEL
from pipeline.catalog.rules.scheduler import SCHEDULER
from pipeline.catalog.rules.storage import STORAGE
from pipeline.catalog.rules.xids import XIDS

RULES: tuple[Rule, ...] = (*STORAGE, *CACHES, *KERNEL, *XIDS, *COMPUTE, *COMMUNICATION, *SCHEDULER)

FAMILIES: tuple[Family, ...] = tuple(f for f in EVERY if f in (HOST, MOUNT, AGENT) or any(rule.family is f for rule in RULES))
"""The families whose readings the leader looks at: those of a rule, the nodes' own, the mounts that checkpoints may lie on, and what the
agents say of their collectors: that there is nothing of a family any more."""


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
