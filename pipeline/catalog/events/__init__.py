"""Every kind of event, once. An event is something that happened once, on one entity, at one time."""

from pipeline.catalog.event import EventKind as EventKind
from pipeline.catalog.events.agent import AGENT
from pipeline.catalog.events.agent import AGENT_STARTED as AGENT_STARTED
from pipeline.catalog.events.agent import COLLECTOR_FAILED as COLLECTOR_FAILED
from pipeline.catalog.events.agent import RING_INVALID as RING_INVALID
from pipeline.catalog.events.agent import RING_OVERRUN as RING_OVERRUN
from pipeline.catalog.events.gpu import GPU
from pipeline.catalog.events.gpu import GPU_LOST as GPU_LOST
from pipeline.catalog.events.gpu import HCCL_ERROR as HCCL_ERROR
from pipeline.catalog.events.gpu import NPU_ERROR as NPU_ERROR
from pipeline.catalog.events.job import ACTION_PROGRESS as ACTION_PROGRESS
from pipeline.catalog.events.job import CAPTURE as CAPTURE
from pipeline.catalog.events.job import CHECKPOINT_COMPLETED as CHECKPOINT_COMPLETED
from pipeline.catalog.events.job import COMMAND_EXITED as COMMAND_EXITED
from pipeline.catalog.events.job import JOB
from pipeline.catalog.events.job import PHASE as PHASE
from pipeline.catalog.events.job import RANK_EXITED as RANK_EXITED
from pipeline.catalog.events.job import RANK_STARTED as RANK_STARTED
from pipeline.catalog.events.kernel import CLOCK_SKEWED as CLOCK_SKEWED
from pipeline.catalog.events.kernel import FILESYSTEM_ERROR as FILESYSTEM_ERROR
from pipeline.catalog.events.kernel import GPU_INIT_FAILED as GPU_INIT_FAILED
from pipeline.catalog.events.kernel import HUNG_TASK as HUNG_TASK
from pipeline.catalog.events.kernel import IO_ERROR as IO_ERROR
from pipeline.catalog.events.kernel import KERNEL
from pipeline.catalog.events.kernel import KERNEL_CRASHED as KERNEL_CRASHED
from pipeline.catalog.events.kernel import KERNEL_LOG_LOST as KERNEL_LOG_LOST
from pipeline.catalog.events.kernel import KERNEL_OOPS as KERNEL_OOPS
from pipeline.catalog.events.kernel import LINK_CHANGED as LINK_CHANGED
from pipeline.catalog.events.kernel import MACHINE_CHECK as MACHINE_CHECK
from pipeline.catalog.events.kernel import OOM_KILL as OOM_KILL
from pipeline.catalog.events.kernel import OOM_VICTIM as OOM_VICTIM
from pipeline.catalog.events.kernel import PCIE_ERROR as PCIE_ERROR
from pipeline.catalog.events.kernel import REMOUNTED_READ_ONLY as REMOUNTED_READ_ONLY
from pipeline.catalog.events.kernel import SEGFAULT as SEGFAULT
from pipeline.catalog.events.kernel import SERVER_LOST as SERVER_LOST
from pipeline.catalog.events.kernel import SXID as SXID
from pipeline.catalog.events.kernel import THERMAL as THERMAL
from pipeline.catalog.events.kernel import XID as XID
from pipeline.catalog.events.scheduler import CLAIM_UNBOUND as CLAIM_UNBOUND
from pipeline.catalog.events.scheduler import NODE_CONDITION as NODE_CONDITION
from pipeline.catalog.events.scheduler import PLACE_LOST as PLACE_LOST
from pipeline.catalog.events.scheduler import SCHEDULER
from pipeline.catalog.events.scheduler import VOLUME_ATTACH_FAILED as VOLUME_ATTACH_FAILED

EVENTS: tuple[EventKind, ...] = (*JOB, *KERNEL, *GPU, *SCHEDULER, *AGENT)
BY_NAME: dict[str, EventKind] = {e.name: e for e in EVENTS}
