"""RDMA ports by the names and labels that node_exporter gives them, so that what was made for those finds them here. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from exporters.encode import Accepted
from pipeline.catalog.metrics import BY_NAME, RDMA_PORT, Kind

PREFIX: Final = "node_infiniband_"

NAMES: Final[Mapping[str, str]] = {
    "state": "state_id",
    "phys_state": "physical_state_id",
    "rate": "rate_bytes_per_second",
    "received": "port_data_received_bytes_total",
    "sent": "port_data_transmitted_bytes_total",
    "received.packets": "port_packets_received_total",
    "sent.packets": "port_packets_transmitted_total",
    "received.unicast": "unicast_packets_received_total",
    "sent.unicast": "unicast_packets_transmitted_total",
    "received.multicast": "multicast_packets_received_total",
    "sent.multicast": "multicast_packets_transmitted_total",
    "link_downs": "link_downed_total",
    "link_recoveries": "link_error_recovery_total",
    "symbol_errors": "symbol_error_total",
    "integrity_errors": "local_link_integrity_errors_total",
    "buffer_overruns": "excessive_buffer_overrun_errors_total",
    "receive_errors": "port_errors_received_total",
    "remote_physical_errors": "port_receive_remote_physical_errors_total",
    "switch_relay_errors": "port_receive_switch_relay_errors_total",
    "receive_constraint_errors": "port_constraint_errors_received_total",
    "send_constraint_errors": "port_constraint_errors_transmitted_total",
    "send_discards": "port_discards_transmitted_total",
    "vl15_dropped": "vl15_dropped_total",
    "send_wait": "port_transmit_wait_total",
    "ack_timeouts": "local_ack_timeout_errors_total",
    "sequence_errors": "packet_sequence_errors_total",
    "implied_sequence_errors": "implied_nak_seq_errors_total",
    "out_of_sequence": "out_of_sequence_packets_received_total",
    "duplicates": "duplicate_requests_packets_total",
    "rnr_naks": "rnr_nak_retry_packets_received_total",
    "out_of_buffer": "out_of_buffer_drops_total",
    "adaptive_retransmits": "roce_adp_retransmits_total",
    "adaptive_retransmit_timeouts": "roce_adp_retransmits_timeout_total",
    "slow_restarts": "roce_slow_restart_used_total",
    "slow_restart_notices": "roce_slow_restart_cnps_total",
    "slow_restart_changes": "roce_slow_restart_total",
    "requester.completion_errors": "req_cqes_errors_total",
    "requester.flushes": "req_cqes_flush_errors_total",
    "requester.remote_access_errors": "req_remote_access_errors_total",
    "requester.remote_invalid_requests": "req_remote_invalid_request_errors_total",
    "responder.completion_errors": "resp_cqes_errors_total",
    "responder.flushes": "resp_cqes_flush_errors_total",
    "responder.remote_access_errors": "resp_remote_access_errors_total",
    "responder.length_errors": "resp_local_length_errors_total",
    "requests.read": "rx_read_requests_total",
    "requests.write": "rx_write_requests_total",
    "requests.atomic": "rx_atomic_requests_total",
    "requests.connect": "rx_dct_connect_requests_total",
    "notices.sent": "np_cnp_packets_sent_total",
    "notices.handled": "rp_cnp_packets_handled_total",
    "notices.ignored": "rp_cnp_ignored_packets_received_total",
    "ecn_marked": "np_ecn_marked_roce_packets_received_total",
    "icrc_errors": "rx_icrc_encapsulated_errors_total",
}
"""Our name, without its family -> theirs, without the prefix. What is not here they do not have."""

_THEIRS: Final = {f"{RDMA_PORT.name}.{ours}": PREFIX + theirs for ours, theirs in NAMES.items()}
_PRESENT: Final = BY_NAME["rdma_port.present"][1]
_INFO: Final = f"# HELP {PREFIX}info Firmware, board and model of an RDMA device, always 1\n# TYPE {PREFIX}info gauge\n"


def node_text(readings: Iterable[Accepted]) -> str:
    """The RDMA ports among `readings` in exposition format 0.0.4, "" where there are none."""
    ports = [(dict(one.labels), one.values) for one in readings if one.family is RDMA_PORT and (_PRESENT, 0) not in one.values]
    rows: dict[str, list[str]] = {}
    for labels, values in ports:
        device, _, port = labels["port"].rpartition(":")
        where = _labels({"device": device, "port": port})
        for metric, value in values:
            if theirs := _THEIRS.get(metric.name):
                rows.setdefault(metric.name, []).append(f"{theirs}{where} {value!r}\n")
    return _info(labels for labels, _ in ports) + "".join(
        _head(name) + "".join(rows[name]) for name in sorted(rows, key=_THEIRS.__getitem__)
    )


def _head(name: str) -> str:
    metric = BY_NAME[name][1]
    kind = "counter" if metric.kind is Kind.COUNTER else "gauge"
    return f"# HELP {_THEIRS[name]} {metric.help}\n# TYPE {_THEIRS[name]} {kind}\n"


def _info(ports: Iterable[Mapping[str, str]]) -> str:
    """A line for each device, whatever the number of its ports."""
    lines: dict[str, str] = {}
    for port in ports:
        device, board, firmware, model = port["port"].rpartition(":")[0], *(port.get(key, "") for key in ("board", "fw", "hca_type"))
        labels = {"board_id": board, "device": device, "firmware_version": firmware, "hca_type": model}
        lines[device] = f"{PREFIX}info{_labels(labels)} 1\n"
    return _INFO + "".join(lines.values()) if lines else ""


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(_pairs(labels)) + "}"


def _pairs(labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        quoted = value.replace("\\", r"\\").replace('"', r"\"")
        yield f'{key}="{quoted}"'
