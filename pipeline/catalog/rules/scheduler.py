"""What shows the explicit faults that schedulers tell of."""

from pipeline.catalog.events import CLAIM_UNBOUND, PLACE_LOST, VOLUME_ATTACH_FAILED
from pipeline.catalog.faults import NODE_NOT_READY, PENDING_CAPACITY, PREEMPTED_OR_EVICTED, VOLUME_ATTACH_FAILURE
from pipeline.catalog.rule import Happened, Hold, Limit, Rule, metric

SCHEDULER: tuple[Rule, ...] = (
    Rule(
        fault=NODE_NOT_READY,
        when=(Limit(metric("sched_node.ready"), 0, 1, above=False),),
        says="{scheduler} holds the node for unfit",
        cleared="{scheduler} holds the node for fit again",
        hold=Hold(2),  # an answer that was late is no verdict
        clear=Hold(2, 5),
        turned=True,
    ),
    Rule(
        fault=PENDING_CAPACITY,
        when=(Limit(metric("sched_job.waiting"), 60, 1),),
        says="job {place} has been waiting for nodes for {value}",
        cleared="job {place} has its nodes",
        entity="job",
    ),
    Rule(
        fault=PREEMPTED_OR_EVICTED,
        when=Happened(PLACE_LOST),
        says="{scheduler} took the place of {place}{message}",
        cleared="nothing more was taken from {place}",
        clear=Hold(3, 20),
        entity="job",
    ),
    Rule(
        fault=VOLUME_ATTACH_FAILURE,
        when=Happened(VOLUME_ATTACH_FAILED, code="FailedAttachVolume"),
        says="a volume of {place} cannot be attached{message}",
        cleared="no more is told of the volumes of {place}",
        clear=Hold(3, 60),  # it is tried again at intervals that grow to two minutes; what comes back soon is the same incident
        entity="object",
    ),
    Rule(
        fault=VOLUME_ATTACH_FAILURE,
        when=Happened(VOLUME_ATTACH_FAILED, times=2, within=300),  # a first mount often comes before what it needs
        says="a volume of {place} cannot be mounted{message}",
        cleared="no more is told of the volumes of {place}",
        clear=Hold(3, 60),
        entity="object",
    ),
    *(
        Rule(
            fault=VOLUME_ATTACH_FAILURE,
            when=(Limit(metric(name), 0, 1, above=False),),
            says=f"the driver {{place}} {said}: volumes of its kind cannot be attached here",
            cleared="the driver {place} is there again",
            hold=Hold(2, 10),  # an update takes it away for some seconds
            clear=Hold(2, 5),
            entity="driver",
            turned=True,
        )
        for name, said in (
            ("csi_driver.registered", "is no longer registered with the node's kubelet"),
            ("csi_driver.ready", "is not ready"),
        )
    ),
    Rule(
        fault=VOLUME_ATTACH_FAILURE,
        when=Happened(CLAIM_UNBOUND, times=2, within=300),
        says="nothing is found or made for the claim {place}{message}",
        cleared="no more is told of the claim {place}",
        clear=Hold(3, 60),
        entity="object",
    ),
)
