"""RDMA ports and network interfaces.

The error counters of a port are those of InfiniBand's PortCounters, 4, 8, 16 or 32 bits wide, and stay at their largest value. Those
that an mlx5 counts by queue are 32 bits wide and begin anew; other makers' are wider.
"""

from pipeline.catalog.metric import F64, U8, U64, C, Family, G, Metric


def _stays(name: str, width: int, help: str) -> Metric:
    return Metric(name, "1", C, U64, 0, None, help, width, saturates=True)


def _wraps(name: str, help: str) -> Metric:
    return Metric(name, "1", C, U64, 0, None, help, 32)


def _count(name: str, help: str) -> Metric:
    return Metric(name, "1", C, U64, 0, None, help)


RDMA_PORT = Family(
    "rdma_port",
    ("node", "port"),
    "A port of an RDMA device",
    (
        Metric("rdma_port.present", "1", G, U8, 0, 1, "1 where the kernel lists the port, 0 where it did so until lately"),
        Metric("rdma_port.state", "1", G, U8, 0, 5, "Logical state: 1 down, 2 initialising, 3 armed, 4 active, 5 active but deferred"),
        Metric(
            "rdma_port.phys_state",
            "1",
            G,
            U8,
            0,
            7,
            "Physical state: 1 sleep, 2 polling, 3 disabled, 4 training, 5 link up, 6 recovering from an error, 7 test",
        ),
        Metric("rdma_port.rate", "By/s", G, F64, 1, 1e13, "Rate that the link runs at"),
        Metric("rdma_port.rate.best", "By/s", G, F64, 1, 1e13, "Highest rate that the link was seen to run at"),
        Metric("rdma_port.received", "By", C, U64, 0, None, "Bytes received"),
        Metric("rdma_port.sent", "By", C, U64, 0, None, "Bytes sent"),
        _count("rdma_port.received.packets", "Packets received"),
        _count("rdma_port.sent.packets", "Packets sent"),
        _count("rdma_port.received.unicast", "Unicast packets received"),
        _count("rdma_port.sent.unicast", "Unicast packets sent"),
        _count("rdma_port.received.multicast", "Multicast packets received"),
        _count("rdma_port.sent.multicast", "Multicast packets sent"),
        _stays("rdma_port.link_downs", 8, "Times that the link failed to recover from an error and went down"),
        _stays("rdma_port.link_recoveries", 8, "Times that the link recovered from an error"),
        _stays("rdma_port.symbol_errors", 16, "Minor errors on the physical lanes"),
        _stays("rdma_port.integrity_errors", 4, "Times that errors on the lanes exceeded the port's own threshold"),
        _stays("rdma_port.buffer_overruns", 4, "Times that the input buffer was overrun"),
        _stays("rdma_port.receive_errors", 16, "Packets received with an error"),
        _stays("rdma_port.remote_physical_errors", 16, "Packets received that were marked bad on their way"),
        _stays("rdma_port.switch_relay_errors", 16, "Packets received that the switch could not pass on"),
        _stays("rdma_port.receive_constraint_errors", 8, "Packets received and dropped by a filter or partition"),
        _stays("rdma_port.send_constraint_errors", 8, "Packets not sent because of a filter or partition"),
        _stays("rdma_port.send_discards", 16, "Packets not sent because the port was down or congested"),
        _stays("rdma_port.vl15_dropped", 16, "Management packets dropped for want of buffers"),
        _stays("rdma_port.send_wait", 32, "Ticks in which data waited to be sent: congestion, no error"),
        _wraps("rdma_port.ack_timeouts", "Times that a request had to be sent again because no answer came in time"),
        _wraps("rdma_port.sequence_errors", "Negative answers because of packets lost on their way out"),
        _wraps("rdma_port.implied_sequence_errors", "Answers that imply packets lost on their way out"),
        _wraps("rdma_port.out_of_sequence", "Packets received out of order"),
        _wraps("rdma_port.duplicates", "Requests received twice"),
        _wraps("rdma_port.rnr_naks", "Negative answers because the receiver was not ready"),
        _wraps("rdma_port.out_of_buffer", "Packets dropped because no receive was posted"),
        _count("rdma_port.drops", "RDMA packets received and dropped"),
        _count("rdma_port.retransmits", "Packets that the device sent again"),
        _wraps("rdma_port.adaptive_retransmits", "Adaptive retransmissions"),
        _wraps("rdma_port.adaptive_retransmit_timeouts", "Timeouts of adaptive retransmission"),
        _wraps("rdma_port.slow_restarts", "Times that a slow restart was used"),
        _wraps("rdma_port.slow_restart_notices", "Congestion notices made by slow restarts"),
        _wraps("rdma_port.slow_restart_changes", "Changes of state to slow restart"),
        _wraps("rdma_port.requester.completion_errors", "Requests completed with an error"),
        _wraps("rdma_port.requester.flushes", "Requests flushed after an error"),
        _wraps("rdma_port.requester.remote_access_errors", "Requests refused by the remote side for want of rights"),
        _wraps("rdma_port.requester.remote_invalid_requests", "Requests refused by the remote side as invalid"),
        _wraps("rdma_port.responder.completion_errors", "Answers completed with an error"),
        _wraps("rdma_port.responder.flushes", "Answers flushed after an error"),
        _wraps("rdma_port.responder.remote_access_errors", "Requests that this side refused for want of rights"),
        _wraps("rdma_port.responder.length_errors", "Answers with a wrong length"),
        _wraps("rdma_port.requests.read", "Read requests received"),
        _wraps("rdma_port.requests.write", "Write requests received"),
        _wraps("rdma_port.requests.atomic", "Atomic requests received"),
        _wraps("rdma_port.requests.connect", "Dynamic connections requested"),
        _count("rdma_port.notices.sent", "Congestion notices (CNP) sent because marked packets came in"),
        _count("rdma_port.notices.handled", "Congestion notices (CNP) received and followed by sending more slowly"),
        _count("rdma_port.notices.ignored", "Congestion notices (CNP) received and not followed"),
        _count("rdma_port.ecn_marked", "Packets received that a switch marked as having met congestion"),
        _count("rdma_port.icrc_errors", "RoCE packets received with a wrong checksum"),
        _count("rdma_port.retries_exceeded", "Requests given up after their last retry"),
        _count("rdma_port.impaired_connections", "Connections that the device slowed down as impaired"),
    ),
)

NETDEV = Family(
    "netdev",
    ("node", "netdev"),
    "A network interface that is a real device, or a bond of them",
    (
        Metric("netdev.present", "1", G, U8, 0, 1, "1 where the kernel lists the interface, 0 where it did so until lately"),
        Metric("netdev.carrier", "1", G, U8, 0, 1, "1 where there is a link; absent where the interface is switched off"),
        Metric("netdev.speed", "By/s", G, F64, 1, 1e13, "Speed of the link"),
        Metric("netdev.speed.best", "By/s", G, F64, 1, 1e13, "Highest speed that the link was seen to have"),
        Metric("netdev.carrier_changes", "1", C, U64, 0, None, "Times that the link came or went", 32),
        Metric("netdev.received", "By", C, U64, 0, None, "Bytes received"),
        Metric("netdev.sent", "By", C, U64, 0, None, "Bytes sent"),
        _count("netdev.received.packets", "Packets received"),
        _count("netdev.sent.packets", "Packets sent"),
        _count("netdev.receive_errors", "Packets received with an error"),
        _count("netdev.send_errors", "Packets that could not be sent"),
        _count("netdev.receive_drops", "Packets received and dropped"),
        _count("netdev.send_drops", "Packets dropped before they were sent"),
        _count("netdev.crc_errors", "Packets received with a wrong checksum"),
        _count("netdev.missed", "Packets missed for want of buffers"),
        _count("netdev.pauses.received", "Pause frames received, of all priorities"),
        _count("netdev.pauses.sent", "Pause frames sent, of all priorities"),
        Metric("netdev.pauses.received.time", "s", C, F64, 0, None, "Time in which the other side's pauses kept this one from sending"),
        Metric("netdev.pauses.sent.time", "s", C, F64, 0, None, "Time in which this side kept the other one from sending"),
        _count("netdev.symbol_errors", "Errors on the physical lanes that could not be corrected"),
        _count("netdev.port_discards", "Packets that the port dropped, received or to be sent, for want of buffers"),
    ),
)
