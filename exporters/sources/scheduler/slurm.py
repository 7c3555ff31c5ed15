"""Slurm's nodes and jobs: from `scontrol` as JSON where it can, as text else, or from slurmrestd. Sources: scontrol(1), Slurm's REST API.

A record that makes no sense is left out; a value that makes none is None. Times are seconds since 1970.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from pipeline import hostlist
from pipeline.errors import InputError

MOST: Final = 64 << 20  # bytes of an answer
_FIELD: Final = re.compile(r"(?:^|\s)([A-Z][A-Za-z_/:]*)=")
_GPUS: Final = re.compile(r"(?:^|,)gres/gpu=(\d{1,6})(?:,|$)", re.ASCII)
_GRES: Final = re.compile(r"(?:^|,)gpu(?::[^,:()]*)?:(\d{1,6})", re.ASCII)
_STATE: Final = re.compile(r"([A-Z_]+)([*~#!%$@^-]*)")
_MARKS: Final = {"*": "NOT_RESPONDING", "~": "POWERED_DOWN", "#": "POWERING_UP", "!": "POWER_DOWN", "%": "POWERING_DOWN"} | {
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "-": "PLANNED",
}
_AWAY: Final = frozenset({"POWERED_DOWN", "POWERING_UP", "POWER_DOWN", "POWERING_DOWN", "POWER_UP", "FUTURE", "MAINTENANCE", "MAINT"}) | {
    "REBOOT_ISSUED",
    "POWER_DRAIN",
}
_UNFIT: Final = frozenset({"DOWN", "ERROR", "FAIL", "FAILING", "UNKNOWN", "NOT_RESPONDING", "NO_RESPOND", "INVALID_REG"})
_CLOSED: Final = _UNFIT | {"DRAIN", "DRAINED", "DRAINING"}
_LOST: Final = {"PREEMPTED": "preempted", "NODE_FAIL": "node_fail", "REQUEUED": "requeued"}
_HELD: Final = frozenset({"JobHeldUser", "JobHeldAdmin", "Dependency", "DependencyNeverSatisfied"})
_RUN: Final = re.compile(r"(?:^|[\s,;])surefoot:run=([A-Za-z0-9][A-Za-z0-9._-]{0,59})(?:$|[\s,;])", re.ASCII)

Record = Mapping[str, str]


def records(text: str) -> list[Record]:
    """The records of `scontrol -o show …`, one a line, by its own names of fields; a value may hold blanks."""
    return [fields for line in text.split("\n") if (fields := dict(_fields(line)))]


def _fields(line: str) -> Iterator[tuple[str, str]]:
    found = list(_FIELD.finditer(line))
    for this, following in zip(found, [*found, None][1:], strict=True):
        value = line[this.end() : following.start() if following else len(line)].strip()
        yield this[1], "" if value in ("(null)", "None", "N/A", "n/s") else value


def of_json(text: str, what: str) -> list[Record]:
    """The records of an answer in JSON, under the names that the text has. `what` is `nodes` or `jobs`. Raises OSError for what is none."""
    try:
        told = json.loads(text)
        found = told[what]
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise OSError(f"Slurm's answer holds no {what}: {type(e).__name__}") from e
    names = _NAMES[what]
    return (
        [{to: _plain(one.get(name)) for name, to in names.items()} for one in found if isinstance(one, dict)]
        if isinstance(found, list)
        else []
    )


_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "nodes": {"name": "NodeName", "state": "State", "reason": "Reason", "gres": "Gres", "tres": "CfgTRES", "tres_used": "AllocTRES"}
    | {"state_flags": "Flags"},
    "jobs": {"job_id": "JobId", "name": "JobName", "job_state": "JobState", "state_reason": "Reason", "nodes": "NodeList"}
    | {"restart_cnt": "Restarts", "submit_time": "SubmitTime", "comment": "Comment", "tres_alloc_str": "AllocTRES", "tres_req_str": "TRES"},
}


def _plain(value: Any) -> str:
    """A value as the text has it: lists of states joined, numbers that may be unset as Slurm's JSON has them since 23.02."""
    if isinstance(value, dict):
        return _plain(value.get("number")) if value.get("set") and not value.get("infinite") else ""
    if isinstance(value, list):
        return "+".join(str(one) for one in value)
    return "" if value is None else str(value)


def nodes(found: Iterable[Record]) -> list[SchedNode]:
    """The nodes that records tell of."""
    return [node for record in found if (node := _node(record))]


def _node(record: Record) -> SchedNode | None:
    names = _hosts(record.get("NodeName", ""))
    states = _states(record.get("State", "")) | _states(record.get("Flags", ""))
    if len(names) != 1 or not states:
        return None
    away = states & _AWAY
    ready = None if away else not states & _UNFIT
    bad = {} if ready or ready is None else {"+".join(sorted(states & _UNFIT)): record.get("Reason", "")}
    return SchedNode(
        names[0],
        ready,
        None if away else not states & _CLOSED,
        _gpus(record.get("CfgTRES", ""), record.get("Gres", "")),
        _gpus(record.get("AllocTRES", ""), "") or (0 if _GPUS.search(record.get("CfgTRES", "")) else None),
        bad,
    )


def jobs(found: Iterable[Record]) -> list[SchedJob]:
    """The jobs that records tell of."""
    return [job for record in found if (job := _job(record))]


def _job(record: Record) -> SchedJob | None:
    number, states = record.get("JobId", ""), _states(record.get("JobState", ""))
    if not (number.isascii() and number.isdigit()) or not states:
        return None
    starts, reason = _int(record.get("Restarts", "")), record.get("Reason", "")
    waits = "PENDING" in states and bool(starts) and reason not in _HELD
    run = _RUN.search(record.get("Comment", ""))
    return SchedJob(
        number,
        record.get("JobName", ""),
        running="RUNNING" in states,
        unplaced_since=_int(record.get("SubmitTime", "")) if waits else None,  # it is submitted anew when it loses its place
        nodes=tuple(_hosts(record.get("NodeList", ""))),
        gpus=_gpus(record.get("AllocTRES", "") or record.get("TRES", ""), ""),
        starts=starts,
        run=run[1] if run else "",
        lost=next((why for state, why in _LOST.items() if state in states), ""),
        reason=reason,
    )


def _states(text: str) -> set[str]:
    """The state and its flags: `IDLE+DRAIN`, `DOWN*+DRAIN`, `down` of older JSON."""
    found = [match for part in text.upper().split("+") if (match := _STATE.fullmatch(part.strip()))]
    return {match[1] for match in found} | {_MARKS[mark] for match in found for mark in match[2]}


def _hosts(text: str) -> list[str]:
    try:
        return hostlist.expand(text) if text else []
    except InputError:
        return []


def _gpus(tres: str, gres: str) -> int | None:
    """How many GPUs, of all types together; None where the cluster does not count them."""
    if found := _GPUS.search(tres):
        return int(found[1])
    counts = [int(count) for count in _GRES.findall(gres)]
    return sum(counts) if counts else None


def _int(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def local_jobs(text: str) -> list[str]:
    """The jobs that `scontrol listpids` finds on this node."""
    words = (line.split() for line in text.splitlines()[1:])
    return list(dict.fromkeys(w[1] for w in words if len(w) > 1 and w[1].isascii() and w[1].isdigit()))


Ask = Callable[[tuple[str, ...]], str]
"""`scontrol` with these arguments: its output. Raises OSError."""


class Scontrol:
    """Asks `scontrol`; whether it speaks JSON is tried once."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._json: bool | None = None

    def show(self, what: str) -> list[Record]:
        """All `nodes` or `jobs`. Raises OSError."""
        if self._json is not False:
            try:
                found = of_json(self._ask(("show", what, "--json")), what)
            except OSError:
                self._json = False
            else:
                self._json = True
                return found
        return records(self._ask(("-o", "show", what)))

    def one(self, what: str, name: str) -> list[Record]:
        """One `node` or `job`; none where Slurm does not know it. Raises OSError."""
        try:
            return records(self._ask(("-o", "show", what, name)))
        except OSError as e:
            if re.search("not found|Invalid job id", str(e)):
                return []
            raise
