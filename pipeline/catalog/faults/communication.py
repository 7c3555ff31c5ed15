"""Faults of the layer communication that something finds."""

from pipeline.catalog.actions import RESTART_RUN
from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

COLLECTIVE_HANG = Fault(
    "collective_hang",
    Layer.COMMUNICATION,
    Severity.CRITICAL,
    15,
    RESTART_RUN,
    "No rank makes progress; one never reached the collective that the others wait in",
    "stacks and flight recorder; restart excluding the suspect",
)

LINK_DOWN = Fault(
    "link_down",
    Layer.COMMUNICATION,
    Severity.CRITICAL,
    30,
    None,
    "A network link is down",
    "exclude the node if the link is not redundant; look at cable and switch port",
)
LINK_FLAP = Fault(
    "link_flap",
    Layer.COMMUNICATION,
    Severity.ERROR,
    30,
    None,
    "A network link goes down and up",
    "drain the node after the next checkpoint; change cable or transceiver",
)
LINK_DEGRADED = Fault(
    "link_degraded",
    Layer.COMMUNICATION,
    Severity.ERROR,
    30,
    None,
    "A network link has errors or is too slow",
    "network ticket; drain the node after the next checkpoint",
)
RDMA_RETRANSMITS = Fault(
    "rdma_retransmits",
    Layer.COMMUNICATION,
    Severity.WARNING,
    30,
    None,
    "Packets are sent again and again",
    "find the switch that the ports which show it have in common",
)
CONGESTION = Fault(
    "congestion",
    Layer.COMMUNICATION,
    Severity.WARNING,
    30,
    None,
    "The network is congested with all links healthy",
    "network ticket, with the ports that show it",
)

COMMUNICATION: tuple[Fault, ...] = (COLLECTIVE_HANG, LINK_DOWN, LINK_FLAP, LINK_DEGRADED, RDMA_RETRANSMITS, CONGESTION)
