"""A run over several nodes, as one launcher sees it: how many it takes, its name, our address, and what the command is told."""

import re
import socket
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime
from queue import Empty, SimpleQueue
from typing import Any, Final
from urllib.parse import urlsplit

from exporters.job.control import Issued
from exporters.job.launches import default_run
from pipeline.catalog.runs import Nodes, parse_nodes
from pipeline.errors import InputError

HOLES: Final = ("{nnodes}", "{node_rank}", "{master}")
_RDZV: Final = ("--rdzv-id", "--rdzv_id")
_RESOLVER: Final = 2.0  # seconds that it gets for a name
_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[Any, ...]]
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


def wanted(given: str | None, command: Sequence[str], environment: Mapping[str, str]) -> Nodes:
    """How many nodes the run takes: as `given`, else torchrun's own --nnodes, else the nodes of our Slurm step, else one.

    Raises InputError where that is no count.
    """
    if given is not None:
        if not given.strip():
            raise InputError("--nodes is empty: give a number such as 4, or least and most such as 2:4, or leave it out")
        return parse_nodes(given)
    own = _option(command, ("--nnodes",))
    if own and own not in HOLES:
        return parse_nodes(own)
    step = environment.get("SLURM_STEP_NUM_NODES", "")
    return parse_nodes(step) if step.isdecimal() and step != "0" else Nodes()


def run_id(given: str | None, command: Sequence[str], environment: Mapping[str, str], now: datetime, *, several: bool = True) -> str:
    """The run's id: as `given`, else of the Slurm job, else torchrun's rendezvous id, else a new one.

    On one node a Slurm job may hold many runs: there it names the run only where its step is this one task.
    """
    if given:
        return given
    if (job := environment.get("SLURM_JOB_ID")) and (several or environment.get("SLURM_STEP_NUM_TASKS") == "1"):
        step = environment.get("SLURM_STEP_ID", "0")
        return f"slurm-{job}" if step == "0" or not step.isdecimal() or len(step) > 6 else f"slurm-{job}.{step}"
    if rdzv := _option(command, _RDZV):
        return _UNFIT.sub("-", rdzv).strip("-._")[:60] or default_run(command[0], now)
    return default_run(command[0], now)


def check_found_together(nodes: Nodes, run: str | None, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raises InputError where launchers of several nodes could not know that they are of one run."""
    if nodes.several and not run and not environment.get("SLURM_JOB_ID") and not _option(command, _RDZV):
        raise InputError(f"a run over {nodes} nodes needs one name on all of them: give each launcher the same --run-id")


def told(command: Sequence[str], issued: Issued, node: str) -> list[str]:
    """The command with `{nnodes}`, `{node_rank}` and `{master}` filled in."""
    nodes = issued.nodes or (node,)
    values = {"{nnodes}": str(len(nodes)), "{node_rank}": str(nodes.index(node)), "{master}": issued.master or "127.0.0.1"}
    return [_filled(word, values) for word in command]


def unknown(command: Sequence[str]) -> str:
    """What the command wants to be told that only the control plane knows; "" for nothing."""
    return ", ".join(hole for hole in HOLES if any(hole in word for word in command))


def leads(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether this node tells of the run where nobody ever said which does: the first of a Slurm step, or by torchrun's own --node-rank."""
    return (_option(command, ("--node-rank", "--node_rank")) or environment.get("SLURM_NODEID", "")) == "0"


def address_towards(endpoint: str, node: str) -> str:
    """Our address as seen from `endpoint`'s network; the node's name where that cannot be told, or is this very machine.

    A name that is no host's then stands for one of several launchers on this machine: it is 127.0.0.1 to all of them.
    Through a tunnel or a proxy on each node the way leads over loopback, too, so a host's name is told where there is one.
    """
    url = urlsplit(endpoint)
    found = _looked_up(url.hostname or "", url.port or 80)
    if not found:
        return node
    family, kind, protocol, _, where = found[0]
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(where)  # sends nothing
            ours = str(probe.getsockname()[0])
    except OSError:
        return node
    if ours.startswith("127.") or ours == "::1":
        return node if _looked_up(node, None) else "127.0.0.1"
    return ours


def _looked_up(name: str, port: int | None) -> Sequence[_Address]:
    """A host's addresses; none where it is no host, or the resolver does not say so in time: a run begins all the same."""
    answers: SimpleQueue[Sequence[_Address]] = SimpleQueue()

    def ask() -> None:
        try:
            answers.put(socket.getaddrinfo(name, port, type=socket.SOCK_DGRAM))
        except (OSError, UnicodeError):  # no such host; or no name that a host could have
            answers.put(())

    threading.Thread(target=ask, name="resolver", daemon=True).start()
    try:
        return answers.get(timeout=_RESOLVER)
    except Empty:
        return ()


def _filled(word: str, values: Mapping[str, str]) -> str:
    for hole, value in values.items():
        word = word.replace(hole, value)
    return word


def _option(command: Sequence[str], names: Sequence[str]) -> str:
    """The value of a long option, as `--name value` or `--name=value`; "" where it is not there."""
    for i, word in enumerate(command):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else (command[i + 1] if i + 1 < len(command) else "")
    return ""
