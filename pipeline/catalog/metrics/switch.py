"""The ports of switches: as programs tell of them that ask the switches, whose pages the agent scrapes.

`switch` is the switch's name in the topology file (`jobs.topology`): by it a port's errors are found for the nodes beneath.
"""

from pipeline.catalog.metric import F64, U8, U64, C, Family, G, Metric


def _count(name: str, help: str) -> Metric:
    return Metric(name, "1", C, U64, 0, None, help)


SWITCH_PORT = Family(
    "switch_port",
    ("node", "switch", "port"),
    "A port of a switch",
    (
        Metric("switch_port.state", "1", G, U8, 1, 7, "Operational state by RFC 2863: 1 up, 2 down, 3 testing, 5 dormant, 6 absent"),
        Metric("switch_port.wanted", "1", G, U8, 1, 3, "State that it was set to: 1 up, 2 down, 3 testing"),
        Metric("switch_port.rate", "By/s", G, F64, 0, 1e13, "Rate that the link runs at"),
        Metric("switch_port.received", "By", C, U64, 0, None, "Bytes received"),
        Metric("switch_port.sent", "By", C, U64, 0, None, "Bytes sent"),
        _count("switch_port.received.packets", "Packets received"),
        _count("switch_port.sent.packets", "Packets sent"),
        _count("switch_port.receive_errors", "Packets received with an error"),
        _count("switch_port.send_errors", "Packets not sent because of an error"),
        _count("switch_port.receive_discards", "Packets received and dropped"),
        _count("switch_port.send_discards", "Packets not sent because the port was down or congested"),
        _count("switch_port.crc_errors", "Packets received with a wrong checksum"),
        _count("switch_port.symbol_errors", "Minor errors on the physical lanes"),
        _count("switch_port.link_downs", "Times that the link went down"),
        _count("switch_port.link_recoveries", "Times that the link recovered from an error"),
        _count("switch_port.send_wait", "Ticks in which data waited to be sent: congestion, no error"),
    ),
)
