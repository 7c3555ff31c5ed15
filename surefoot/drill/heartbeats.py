"""Heartbeats for NVRx's ft_launcher, where the training runs under it: as a careful user of it sends them.

One a step; once some steps and a checkpoint have been seen, its own calculation sets how long the next one may take
(five times the longest so far, by its default). Without them it would take a rank for alive for 45 minutes.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

MODULE: Final = "nvidia_resiliency_ext.fault_tolerance.launcher"
LEARNT: Final = 25  # heartbeats that its calculation is made from: there is a checkpoint among them
_SOCKET: Final = "FT_RANK_MONITOR_IPC_SOCKET"  # the launcher's, in the environment of each rank


def installed() -> bool:
    """Whether ft_launcher is there beside our PyTorch."""
    return find_spec("nvidia_resiliency_ext") is not None


def start() -> Callable[[], None]:
    """What is to be called after each step, by all ranks: nothing is done where nobody listens. A process group must be there."""
    if not os.environ.get(_SOCKET):
        return lambda: None
    from nvidia_resiliency_ext.fault_tolerance import RankMonitorClient

    client, sent = RankMonitorClient(), 0
    client.init_workload_monitoring()

    def beat() -> None:
        nonlocal sent
        client.send_heartbeat()
        sent += 1
        if sent == LEARNT:
            client.calculate_and_set_hb_timeouts()

    return beat
