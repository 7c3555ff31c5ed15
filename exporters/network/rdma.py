"""RDMA ports: link, traffic, errors, retransmissions, congestion."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Final

from exporters.best import Best
from exporters.collector import Reading, Site
from exporters.missed import Missed
from exporters.sources.network import infiniband
from exporters.sources.network.infiniband import Device, Port
from pipeline.catalog.metrics import RDMA_PORT

_ACTIVE: Final = 4  # the lowest logical state in which a port carries data

# The kernel's names, alike for all drivers.
COUNTERS: Final[Mapping[str, str]] = {
    "port_rcv_data": "received",
    "port_xmit_data": "sent",
    "port_rcv_packets": "received.packets",
    "port_xmit_packets": "sent.packets",
    "unicast_rcv_packets": "received.unicast",
    "unicast_xmit_packets": "sent.unicast",
    "multicast_rcv_packets": "received.multicast",
    "multicast_xmit_packets": "sent.multicast",
    "link_downed": "link_downs",
    "link_error_recovery": "link_recoveries",
    "symbol_error": "symbol_errors",
    "local_link_integrity_errors": "integrity_errors",
    "excessive_buffer_overrun_errors": "buffer_overruns",
    "port_rcv_errors": "receive_errors",
    "port_rcv_remote_physical_errors": "remote_physical_errors",
    "port_rcv_switch_relay_errors": "switch_relay_errors",
    "port_rcv_constraint_errors": "receive_constraint_errors",
    "port_xmit_constraint_errors": "send_constraint_errors",
    "port_xmit_discards": "send_discards",
    "VL15_dropped": "vl15_dropped",
    "port_xmit_wait": "send_wait",
}

# What each driver calls it: mlx5, mlx4 (rq_, sq_), bnxt_re, irdma, efa, in this order. The first that is there counts.
HARDWARE: Final[Mapping[str, tuple[str, ...]]] = {
    "received": ("rx_bytes",),
    "sent": ("tx_bytes",),
    "received.packets": ("rx_pkts",),
    "sent.packets": ("tx_pkts",),
    "ack_timeouts": ("local_ack_timeout_err", "sq_num_to", "to_retransmits", "RTO", "retrans_timeout_events"),
    "sequence_errors": ("packet_seq_err", "sq_num_oos", "seq_err_naks_rcvd", "Nak Sequence Error"),
    "implied_sequence_errors": ("implied_nak_seq_err", "Nak Sequence Error Implied"),
    "out_of_sequence": ("out_of_sequence", "rq_num_oos", "rx_out_of_sequence", "oos_drop_count", "Rcvd Out of order packets"),
    "duplicates": ("duplicate_request", "rq_num_dup", "dup_req"),
    "rnr_naks": ("rnr_nak_retry_err", "sq_num_rnr", "rnr_naks_rcvd", "RNR received"),
    "out_of_buffer": ("out_of_buffer", "rx_out_of_buffer"),
    "drops": ("rx_roce_discards", "rx_drops"),
    "retransmits": ("tcpRetransSegs", "RetransSegs", "retrans_pkts"),
    "adaptive_retransmits": ("roce_adp_retrans",),
    "adaptive_retransmit_timeouts": ("roce_adp_retrans_to",),
    "slow_restarts": ("roce_slow_restart",),
    "slow_restart_notices": ("roce_slow_restart_cnps",),
    "slow_restart_changes": ("roce_slow_restart_trans",),
    "requester.completion_errors": ("req_cqe_error",),
    "requester.flushes": ("req_cqe_flush_error",),
    "requester.remote_access_errors": ("req_remote_access_errors", "sq_num_rae", "remote_access_err"),
    "requester.remote_invalid_requests": ("req_remote_invalid_request", "sq_num_rire", "remote_invalid_req_err"),
    "responder.completion_errors": ("resp_cqe_error",),
    "responder.flushes": ("resp_cqe_flush_error",),
    "responder.remote_access_errors": ("resp_remote_access_errors", "rq_num_rae"),
    "responder.length_errors": ("resp_local_length_error", "rq_num_lle", "res_length_mismatch"),
    "requests.read": ("rx_read_requests",),
    "requests.write": ("rx_write_requests",),
    "requests.atomic": ("rx_atomic_requests",),
    "requests.connect": ("rx_dct_connect",),
    "notices.sent": ("np_cnp_sent", "tx_cnp_pkts", "cnpSent"),
    "notices.handled": ("rp_cnp_handled", "rx_cnp_pkts", "cnpHandled"),
    "notices.ignored": ("rp_cnp_ignored", "cnpIgnored"),
    "ecn_marked": ("np_ecn_marked_roce_packets", "rx_ecn_marked_pkts", "RxECNMrkd"),
    "icrc_errors": ("rx_icrc_encapsulated",),
    "retries_exceeded": ("max_retry_exceeded",),
    "impaired_connections": ("impaired_remote_conn_events",),
}
_WANTED: Final = frozenset(name for names in HARDWARE.values() for name in names)


class RdmaCollector:
    """A reading for each port of each RDMA device."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._best = Best("rdma_port", site.kept)
        self._missed = Missed("rdma_port", site.kept)
        self._known: dict[str, Mapping[str, str]] = {}  # what else was known of each port

    def absent(self) -> str:
        """No RDMA device."""
        return "no RDMA device"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The ports' readings, also of one that was active and that the kernel no longer lists; none where there is no RDMA device."""
        listed: dict[str, str] = {}
        running = set()
        for device in infiniband.devices(self._site.sys, _WANTED):
            for port in device.ports:
                name = f"{device.name}:{port.number}"
                runs = port.state is not None and port.state >= _ACTIVE
                best = self._best.of(name, port.rate if runs else None)
                values = {**dict.fromkeys(_NAMES), **_values(port), "rdma_port.present": 1, "rdma_port.rate.best": best}
                about = self._known[name] = _attributes(device, port)
                listed[name] = f"{device.address}:{port.number}" if device.address else ""
                if runs and not device.virtual:
                    running.add(name)
                yield Reading(RDMA_PORT, {"node": self._site.node, "port": name}, values, about)
        for name, place in self._missed.missing(listed, running, now.timestamp()).items():
            address = place.rpartition(":")[0]
            if not infiniband.elsewhere(self._site.sys, address):
                last = self._known.get(name) or ({"pci": address} if address else {})
                yield Reading(RDMA_PORT, {"node": self._site.node, "port": name}, {**dict.fromkeys(_NAMES), "rdma_port.present": 0}, last)

    def kept(self) -> Mapping[str, int]:
        """The highest rates, and the ports that should be there."""
        return {**self._best.kept(), **self._missed.kept()}


_NAMES: Final = tuple(metric.name for metric in RDMA_PORT.metrics)


def _values(port: Port) -> dict[str, float | int | None]:
    hardware = {ours: next((port.hardware[name] for name in names if name in port.hardware), None) for ours, names in HARDWARE.items()}
    counters = {COUNTERS[name]: value for name, value in port.counters.items() if name in COUNTERS}
    link = {"state": port.state, "phys_state": port.phys_state, "rate": port.rate}
    return {f"rdma_port.{name}": value for name, value in {**hardware, **counters, **link}.items()}


def _attributes(device: Device, port: Port) -> dict[str, str]:
    """What else is known about it. A virtual function is called so: its link goes with the container that it was given to."""
    told = {
        "link_layer": port.link_layer,
        "netdev": port.netdev,
        "gid": port.gid,
        "fw": device.firmware,
        "board": device.board,
        "hca_type": device.model,
        "driver": device.driver,
        "pci": device.address,
        "function": "virtual" if device.virtual else "",
    }
    return {key: word for key, word in told.items() if word}
