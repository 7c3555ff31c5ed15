"""Huawei's Ascend NPUs, from the table that `npu-smi info` prints: there is no other interface that every version has.

Two lines are an NPU's chip: "| 0  910B3 | OK | 93.9  45  0 / 0 |" and "| 0 | 0000:C1:00.0 | 12  0 / 0  3389 / 65536 |". The
table of processes below has four columns.
"""

import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from exporters.sources.command import output
from exporters.sources.gpu import pci
from exporters.sources.gpu.accelerator import Device, Driver, Found, NoDriver, Roll, Seen, State, User, Value

VENDOR: Final = 0x19E5
COMMAND: Final = "npu-smi"
TIMEOUT: Final = 20.0  # seconds, after which the command is ended: it asks every chip in turn
_MIB: Final = 1 << 20
_MOST: Final = 1 << 20  # bytes of its table
_NUMBER: Final = re.compile(r"-?\d{1,12}(?:\.\d{1,6})?")
_OF: Final = re.compile(r"(\d{1,12}) */ *(\d{1,12})")
_VERSION: Final = re.compile(r"Version: *([\w.-]+)")


@dataclass(slots=True)
class Chip:
    """One chip of an NPU, as the table has it."""

    npu: str
    model: str
    state: State
    number: str = ""
    device: Device | None = None
    users: list[User] = field(default_factory=list)


def load(timeout: float = TIMEOUT) -> Driver | None:
    """The driver; None where its tool is not installed. `timeout` is the seconds that the tool has."""
    return Ascend(partial(_run, timeout)) if shutil.which(COMMAND) else None


class Ascend:
    """The driver, as `accelerator.Driver`: one call of the tool tells of all chips, which is the roll's; `read` hands out its parts."""

    asking = ""

    def __init__(self, run: Callable[[], str]) -> None:
        self._run = run

    def roll(self, *, renew: bool, hanging: Collection[str]) -> Roll:
        """The chips. Raises NoDriver where the tool fails."""
        return Roll([Found(chip.device, [Seen(chip.state, users=chip.users)]) for chip in parse(self._run()) if chip.device])

    def read(self, found: Found) -> Seen:
        """How the chip was at the roll, once. Raises OSError where it has been handed out: it would be old."""
        news: list[Seen] = found.handle
        if not news:
            raise OSError(f"{COMMAND} has told nothing new")
        return news.pop()


def parse(text: str) -> list[Chip]:
    """The chips in the table; lines that are no part of it are left alone."""
    version = _VERSION.search(text)
    chips: list[Chip] = []
    begun: Chip | None = None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 4:
            _process(chips, cells)
        elif len(cells) != 3:
            continue
        elif address := pci.normal(cells[1]):
            if begun is not None and begun.device is None:
                chips.append(_finished(begun, cells, address, version[1] if version else ""))
            begun = None
        elif (name := cells[0].split(None, 1)) and name[0].isdecimal() and len(name) == 2:
            begun = _begun(name, cells[2])
    return chips


def _begun(name: list[str], cell: str) -> Chip:
    """From an NPU's first line: power in watts, temperature in degrees; "NA" stands for what is not known."""
    words = [float(word) if _NUMBER.fullmatch(word) else None for word in [*cell.split(), "", ""][:2]]
    return Chip(name[0], name[1], State(power=words[0], temperature=words[1]))


def _finished(chip: Chip, cells: list[str], address: str, version: str) -> Chip:
    """With the second line: the load of its cores in percent, memory and high-bandwidth memory used and in all, in MiB."""
    busy = _NUMBER.match(cells[2])
    memories = [(int(used) * _MIB, int(total) * _MIB) for used, total in _OF.findall(cells[2])]
    used, total = next(((used, total) for used, total in reversed(memories) if total), (None, None))
    free: Value = None if used is None or total is None or used > total else total - used
    utilization = None if busy is None else float(busy[0]) / 100
    chip.state = replace(chip.state, utilization=utilization, memory_used=used, memory_total=total, memory_free=free, processes=0)
    chip.number = next(iter(cells[0].split()), "")
    # The tool names no serial number here; the place on the bus is what stays when numbers shift.
    chip.device = Device(f"NPU-{address}", address, chip.npu, "huawei", f"Ascend {chip.model}", driver=version)
    return chip


def _process(chips: list[Chip], cells: list[str]) -> None:
    place, pid, _, memory = cells
    if pid.isdecimal() and memory.isdecimal() and len(pid) < 8 and len(memory) < 10:
        for chip in chips:
            if [chip.npu, chip.number] == place.split()[:2]:
                chip.users.append(User(int(pid), int(memory) * _MIB))
                chip.state = replace(chip.state, processes=len(chip.users))


def _run(timeout: float) -> str:
    try:
        return output((COMMAND, "info"), timeout, _MOST)
    except OSError as e:
        raise NoDriver(str(e)) from e
