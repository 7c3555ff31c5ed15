"""What shows the explicit faults of the network.

A RoCE port and its interface are one thing to a person: what only the interface counts is said of the port. Virtual functions are left
alone: their links go with the containers that they were given to. Out-of-order packets are no sign of loss where switches route
adaptively, and nobody knows how long a tick of `rdma_port.send_wait` is: both are there to be looked at, and show nothing by themselves.
"""

from collections.abc import Mapping
from typing import Final

from pipeline.catalog.fault import Fault
from pipeline.catalog.faults import CONGESTION, LINK_DEGRADED, LINK_DOWN, LINK_FLAP, RDMA_RETRANSMITS
from pipeline.catalog.rule import Hold, Limit, Rule, Scope, View, metric

_NOT_VIRTUAL: Final = {"function": "virtual"}
_ON_A_PORT: Final = {"kind": "bond"}  # of what an interface says of the RDMA port on it
_ALONE: Final = {"kind": "bond", "port": ".+"}  # of an interface without one; a bond is slower because one of its links is down
_INTERFACE: Final[tuple[tuple[str, Mapping[str, str]], ...]] = (("port", _ON_A_PORT), ("netdev", _ALONE))
_ACTIVE: Final = Limit(metric("rdma_port.state"), 4, 3)
# The specification allows one wrong bit in 10^12: on a link of 40 Gb/s that is 144 an hour. Faster links correct theirs before they count.
_ERRORS: Final = 24
_AT_ONCE: Final = Hold()
_TEN_MINUTES: Final = 600.0


def _grew(name: str, bad: float, good: float, within: float = _TEN_MINUTES) -> Limit:
    return Limit(metric(name), bad, good, view=View.INCREASE, within=within)


def _port(fault: Fault, when: tuple[Limit, ...], says: str, cleared: str, hold: Hold = _AT_ONCE, scope: Scope = Scope.ANYWHERE) -> Rule:
    return Rule(
        fault=fault, when=when, says=says, cleared=cleared, hold=hold, clear=Hold(2, 5), entity="port", scope=scope, never=_NOT_VIRTUAL
    )


def _of_interface(
    fault: Fault, when: tuple[Limit, ...], says: str, cleared: str, hold: Hold = _AT_ONCE, scope: Scope = Scope.ANYWHERE
) -> tuple[Rule, ...]:
    """What an interface says, told of the port on it, or else of itself."""
    return tuple(
        Rule(fault=fault, when=when, says=says, cleared=cleared, hold=hold, clear=Hold(2, 5), entity=entity, scope=scope, never=never)
        for entity, never in _INTERFACE
    )


def _gone(name: str, entity: str, never: Mapping[str, str]) -> Rule:
    """The kernel no longer lists what had a link."""
    return Rule(
        fault=LINK_DOWN,
        when=(Limit(metric(name), 0, 1, above=False),),
        says="{place} had a link and is gone: the kernel no longer lists it",
        cleared="{place} is there again",
        hold=Hold(2),
        clear=Hold(2),
        entity=entity,
        never=never,
    )


_DOWN: Final = (
    Rule(
        fault=LINK_DOWN,
        when=(Limit(metric("rdma_port.state"), 3, 4, above=False),),
        says="{place} was active and is not any more: its state is {rdma_port_state} (1 down, 2 initialising, 3 armed)",
        cleared="{place} is active again",
        hold=Hold(2),
        clear=Hold(2),
        entity="port",
        turned=True,
        never=_NOT_VIRTUAL,
    ),
    _port(
        LINK_DOWN,
        (Limit(metric("rdma_port.link_downs"), 1, 0, view=View.INCREASE),),
        "the link of {place} was lost, {value} more on its counter",
        "the link of {place} was not lost again",
        scope=Scope.RUN,
    ),
    Rule(
        fault=LINK_DOWN,
        when=(Limit(metric("netdev.carrier"), 0, 1, above=False),),
        says="{place} had a link and has none any more",
        cleared="{place} has a link again",
        hold=Hold(2),
        clear=Hold(2),
        entity="netdev",
        turned=True,
        never=_ALONE,
    ),
    _gone("rdma_port.present", "port", _NOT_VIRTUAL),
    _gone("netdev.present", "netdev", _ALONE),
)

_FLAP: Final = (
    _port(
        LINK_FLAP, (_grew("rdma_port.link_downs", 3, 0),), "{place} lost its link {value} times in ten minutes", "{place} keeps its link"
    ),
    _port(
        LINK_FLAP,
        (_grew("rdma_port.link_downs", 10, 9, 3600.0),),
        "{place} lost its link {value} times in an hour",
        "{place} keeps its link: lost {value} times in an hour",
    ),
    *_of_interface(
        LINK_FLAP,
        (_grew("netdev.carrier_changes", 6, 1),),
        "the link of {netdev} came and went {value} times in ten minutes",
        "the link of {netdev} stays as it is",
    ),
)

_SLOW: Final = (
    _port(
        LINK_DEGRADED,
        (Limit(metric("rdma_port.rate"), 0.95, 0.99, above=False, of=metric("rdma_port.rate.best")), _ACTIVE),
        "{place} runs at {rdma_port_rate}, and has run at {rdma_port_rate_best}",
        "{place} runs at {rdma_port_rate}",
        Hold(2, 5),
    ),
    Rule(
        fault=LINK_DEGRADED,
        when=(Limit(metric("netdev.speed"), 0.95, 0.99, above=False, of=metric("netdev.speed.best")),),
        says="{place} runs at {netdev_speed}, and has run at {netdev_speed_best}",
        cleared="{place} runs at {netdev_speed}",
        hold=Hold(2, 5),
        clear=Hold(2, 5),
        entity="netdev",
        never=_ALONE,
    ),
)

_ERRONEOUS: Final = (
    _port(
        LINK_DEGRADED,
        (_grew("rdma_port.symbol_errors", _ERRORS, 2),),
        "{place} had {value} symbol errors in ten minutes",
        "{place} has had {value} symbol errors in ten minutes",
    ),
    _port(
        LINK_DEGRADED,
        (_grew("rdma_port.link_recoveries", 2, 0),),
        "the link of {place} had to recover from errors {value} times in ten minutes",
        "the link of {place} has not had to recover for ten minutes",
    ),
    _port(
        LINK_DEGRADED,
        (_grew("rdma_port.integrity_errors", 1, 0),),
        "the errors of {place} exceeded its own threshold {value} times in ten minutes",
        "the errors of {place} are below its own threshold",
    ),
    *_of_interface(
        LINK_DEGRADED,
        (_grew("netdev.symbol_errors", _ERRORS, 2),),
        "{netdev} had {value} errors that could not be corrected in ten minutes",
        "{netdev} has had {value} errors in ten minutes",
    ),
    *_of_interface(
        LINK_DEGRADED,
        (_grew("netdev.crc_errors", _ERRORS, 2),),
        "{netdev} received {value} packets with a wrong checksum in ten minutes",
        "{netdev} has received {value} packets with a wrong checksum in ten minutes",
    ),
)

_AGAIN: Final = (
    _port(
        RDMA_RETRANSMITS,
        (Limit(metric("rdma_port.ack_timeouts"), 1, 0.1, view=View.RATE),),
        "{place} waits in vain for answers, {value}",
        "{place} gets its answers",
        Hold(2, 5),
        Scope.RUN,
    ),
    _port(
        RDMA_RETRANSMITS,
        (
            Limit(metric("rdma_port.sequence_errors"), 1e-4, 1e-5, of=metric("rdma_port.sent.packets"), view=View.SHARE),
            Limit(metric("rdma_port.sequence_errors"), 10, 1, view=View.RATE),
        ),
        "{value} of the packets that {place} sends are lost and sent again",
        "{value} of the packets that {place} sends are lost",
        Hold(2, 5),
        Scope.RUN,
    ),
    _port(
        RDMA_RETRANSMITS,
        (Limit(metric("rdma_port.rnr_naks"), 100, 10, view=View.RATE),),
        "the receivers that {place} sends to are not ready, {value}",
        "the receivers that {place} sends to are ready",
        Hold(2, 5),
        Scope.RUN,
    ),
    _port(
        RDMA_RETRANSMITS,
        (
            Limit(metric("rdma_port.retransmits"), 1e-3, 1e-4, of=metric("rdma_port.sent.packets"), view=View.SHARE),
            Limit(metric("rdma_port.retransmits"), 10, 1, view=View.RATE),
        ),
        "{place} sends {value} of its packets again",
        "{place} sends {value} of its packets again",
        Hold(2, 5),
        Scope.RUN,
    ),
)

_CONGESTED: Final = (
    _port(
        CONGESTION,
        (
            Limit(metric("rdma_port.ecn_marked"), 0.05, 0.01, of=metric("rdma_port.received.packets"), view=View.SHARE),
            Limit(metric("rdma_port.ecn_marked"), 100, 10, view=View.RATE),
            _ACTIVE,
        ),
        "{value} of the packets that {place} receives have met congestion",
        "{value} of the packets that {place} receives have met congestion",
        Hold(2, 5),
        Scope.RUN,
    ),
    *_of_interface(
        CONGESTION,
        (
            Limit(metric("netdev.pauses.received.time"), 0.1, 0.02, view=View.RATE),
            Limit(metric("netdev.carrier"), 1, 0),
        ),
        "{netdev} was kept from sending {value} of the time",
        "{netdev} was kept from sending {value} of the time",
        Hold(2, 5),
        Scope.RUN,
    ),
)

COMMUNICATION: tuple[Rule, ...] = (*_DOWN, *_FLAP, *_SLOW, *_ERRONEOUS, *_AGAIN, *_CONGESTED)
