"""Several nodes on one machine: each a node name with an agent and a launcher of its own, and where root allows it a network of its own.

The drill's process moves into a network namespace before anything is started; a bridge in it joins one namespace a
node. All of it ends with the last process in it: whatever becomes of a drill, no interface is left behind.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from exporters.job import boot
from exporters.job.procfs import pids
from pipeline.catalog.faults import HOST_DOWN
from pipeline.errors import NotPossible
from pipeline.secrets import ingest_token
from surefoot.drill import kernel
from surefoot.drill.inject import NAMES, Subject, command, place_of, spawn
from surefoot.drill.plan import Plan
from surefoot.drill.stack import Stack, free_ports

BRIDGE: Final = "10.213.0.1"
_CLONE_NEWNET: Final = 0x4000_0000
_INTERFACE: Final = "eth0"


@dataclass(frozen=True, slots=True)
class Host:
    """A node: `holder` is the process that keeps its network namespace."""

    name: str
    number: int
    holder: subprocess.Popen[bytes]

    @property
    def link(self) -> str:
        """The bridge's end of its cable."""
        return f"node{self.number}"

    @property
    def enter(self) -> tuple[str, ...]:
        """Words before a command that is to run there."""
        return ("nsenter", "--target", str(self.holder.pid), "--net", "--")

    def lose(self) -> None:
        """What a power cut does: nothing is heard of it any more, and nothing on it lives."""
        _ip("link", "set", self.link, "down")  # first: no peer is told that a connection is over
        inside = os.readlink(f"/proc/{self.holder.pid}/ns/net")
        for _ in range(2):  # who was being started meanwhile
            for pid in _inside(inside):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def prepare() -> None:
    """Give this process, and with it all that it starts, a network of its own. Raises NotPossible."""
    try:
        kernel.call("unshare", _CLONE_NEWNET)
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "surefoot", "type", "bridge")
        _ip("address", "add", f"{BRIDGE}/24", "dev", "surefoot")
        _ip("link", "set", "surefoot", "up")
    except OSError as e:
        raise _not_here(e.strerror or str(e)) from e


def start(plan: Plan, stack: Stack, run: str) -> tuple[Subject, list[Host]]:
    """Start each node's agent and launcher, the plan's spare too; the training's output is in `train.log` and one more file a node.

    Raises NotPossible where this machine gives no networks.
    """
    hosts = [_host(number) for number in range(plan.nodes + plan.spares)]
    port = str(free_ports(1)[0])
    words = command(
        plan,
        stack.folder / run,
        launch=("--nnodes", "{nnodes}", "--node-rank", "{node_rank}", "--master-addr", "{master}", "--master-port", port),
    )
    processes = []
    for host in hosts:
        told = _told(stack, host)
        surefoot = [*host.enter, sys.executable, "-P", "-m", "surefoot", "--config", str(stack.config), "--parent", str(os.getpid())]
        spawn([*surefoot, "agent"], stack.folder / run, f"agent-{host.name}", told)
        launcher = [*surefoot, "run", "--run-id", run, "--nodes", str(plan.nodes), "--checkpoints", str(stack.folder / run / "checkpoints")]
        processes.append(spawn([*launcher, "--", *words], stack.folder / run, "train" if host.number == 0 else f"train-{host.name}", told))
    stays = next(i for i, host in enumerate(hosts) if not (plan.spares and host.name == place_of(HOST_DOWN, plan, stack).node))
    return Subject(processes.pop(stays), run, stack.folder / run, tuple(processes)), hosts


def _told(stack: Stack, host: Host) -> dict[str, str]:
    own = {"SUREFOOT_RING_DIR": f"rings-{host.name}", "SUREFOOT_STATE_DIR": f"state-{host.name}"}
    return {
        "SUREFOOT_NODE": host.name,
        "SUREFOOT_INGEST__TOKEN": ingest_token(stack.settings),
        "GLOO_SOCKET_IFNAME": _INTERFACE,
        **{name: str(stack.folder / folder) for name, folder in own.items()},
    }


def _host(number: int) -> Host:
    ends_with_us = (sys.executable, "-I", "-S", boot.__file__, str(os.getpid()))
    holder = subprocess.Popen([*ends_with_us, "unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
    host = Host(NAMES[number], number, holder)
    _await_own_network(holder)
    _ip("link", "add", host.link, "type", "veth", "peer", "name", _INTERFACE, "netns", str(holder.pid))
    _ip("link", "set", host.link, "master", "surefoot", "up")
    address = BRIDGE.rpartition(".")[0] + f".{number + 2}/24"
    for words in (("link", "set", "lo", "up"), ("address", "add", address, "dev", _INTERFACE), ("link", "set", _INTERFACE, "up")):
        _ip(*words, enter=host.enter)
    return host


def _await_own_network(holder: subprocess.Popen[bytes]) -> None:
    ours, deadline = os.readlink("/proc/self/ns/net"), time.monotonic() + 10.0
    while os.readlink(f"/proc/{holder.pid}/ns/net") == ours:
        if holder.poll() is not None:
            raise _not_here("unshare made none")
        if time.monotonic() > deadline:
            raise _not_here("unshare made none within 10 s")
        time.sleep(0.01)


def _inside(network: str) -> Iterator[int]:
    for pid in pids():
        with suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/net") == network:
                yield pid


def _ip(*words: str, enter: Sequence[str] = ()) -> None:
    """Raises NotPossible."""
    argv = [*enter, "ip", *words]
    try:
        subprocess.run(argv, check=True, capture_output=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as e:
        told = e.stderr.decode(errors="replace").strip().replace("\n", "; ")
        raise _not_here(f"`ip {' '.join(words)}` ended with {e.returncode}: {told or 'no reason given'}") from e
    except OSError as e:
        raise _not_here(f"{argv[0]}: {e.strerror}") from e


def _not_here(why: str) -> NotPossible:
    return NotPossible(f"several nodes on one machine need networks of their own ({why}): run the drill as root, with iproute2")
