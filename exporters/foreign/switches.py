"""The names of programs that ask switches: snmp_exporter's of IF-MIB, gnmic's of OpenConfig, infiniband_exporter's of a subnet.

What tells of one switch at a time, as SNMP does, names it by the target: `name` in `agent.scrape`, or a label `switch` there. A port that
is put into no state, and the sums over a switch, are left as they are.
"""

from typing import Final

from exporters.foreign.names import Name, NameMap
from pipeline.catalog.metrics import SWITCH_PORT

_SNMP: Final = (
    Name("ifOperStatus", "switch_port.state"),
    Name("ifAdminStatus", "switch_port.wanted"),
    Name("ifHighSpeed", "switch_port.rate", scale=1e6, over=8),  # Mb/s
    Name("ifHCInOctets", "switch_port.received"),
    Name("ifHCOutOctets", "switch_port.sent"),
    *(Name(f"ifHCIn{kind}Pkts", "switch_port.received.packets") for kind in ("Ucast", "Multicast", "Broadcast")),
    *(Name(f"ifHCOut{kind}Pkts", "switch_port.sent.packets") for kind in ("Ucast", "Multicast", "Broadcast")),
    Name("ifInErrors", "switch_port.receive_errors"),
    Name("ifOutErrors", "switch_port.send_errors"),
    Name("ifInDiscards", "switch_port.receive_discards"),
    Name("ifOutDiscards", "switch_port.send_discards"),
)
_OPENCONFIG: Final = "interfaces_interface_state_counters_"
_ETHERNET: Final = "interfaces_interface_ethernet_state_counters_"
_GNMI: Final = (
    Name(_OPENCONFIG + "in_octets", "switch_port.received"),
    Name(_OPENCONFIG + "out_octets", "switch_port.sent"),
    Name(_OPENCONFIG + "in_pkts", "switch_port.received.packets"),
    Name(_OPENCONFIG + "out_pkts", "switch_port.sent.packets"),
    Name(_OPENCONFIG + "in_errors", "switch_port.receive_errors"),
    Name(_OPENCONFIG + "out_errors", "switch_port.send_errors"),
    Name(_OPENCONFIG + "in_discards", "switch_port.receive_discards"),
    Name(_OPENCONFIG + "out_discards", "switch_port.send_discards"),
    Name(_OPENCONFIG + "carrier_transitions", "switch_port.link_downs", over=2),  # counts both ways
    Name(_ETHERNET + "in_crc_errors", "switch_port.crc_errors"),
)
_SUBNET: Final = "infiniband_switch_port_"
_INFINIBAND: Final = (
    Name(_SUBNET + "rate_bytes_per_second", "switch_port.rate"),
    Name(_SUBNET + "receive_data_bytes_total", "switch_port.received"),
    Name(_SUBNET + "transmit_data_bytes_total", "switch_port.sent"),
    Name(_SUBNET + "receive_packets_total", "switch_port.received.packets"),
    Name(_SUBNET + "transmit_packets_total", "switch_port.sent.packets"),
    Name(_SUBNET + "receive_errors_total", "switch_port.receive_errors"),
    Name(_SUBNET + "transmit_discards_total", "switch_port.send_discards"),
    Name(_SUBNET + "symbol_error_total", "switch_port.symbol_errors"),
    Name(_SUBNET + "link_downed_total", "switch_port.link_downs"),
    Name(_SUBNET + "link_error_recovery_total", "switch_port.link_recoveries"),
    Name(_SUBNET + "transmit_wait_total", "switch_port.send_wait"),
)

SWITCHES: Final = (
    NameMap("snmp_exporter", SWITCH_PORT, {"switch": ("{switch}", "{target}"), "port": ("{ifName}", "{ifDescr}", "{ifIndex}")}, _SNMP),
    NameMap("gnmic", SWITCH_PORT, {"switch": ("{switch}", "{source}", "{target}"), "port": ("{interface_name}", "{name}")}, _GNMI),
    NameMap("infiniband_exporter", SWITCH_PORT, {"switch": ("{switch}", "{guid}"), "port": ("{port}",)}, _INFINIBAND),
)
