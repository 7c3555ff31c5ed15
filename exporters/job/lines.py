"""What the command's output lines say: which rank printed, and what torchrun reports of its workers. Pure."""

import re
from dataclasses import dataclass
from typing import Final

MAX_LINE: Final = 16 << 10  # bytes after which an unfinished line is cut

# "[rank3]:" is a global rank (torch's exception hook), "[default3]:" a local one (torchrun --tee). Inside a line a
# prefix counts only where it is glued to what stands before: there a peer's line broke in without a line end.
_PREFIX: Final = re.compile(r"(?:^|(?<=\S))\[(rank|default)(\d{1,7})\]:")
_FAILED: Final = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) \(pid: (\d+)\)")
_EXITCODE: Final = re.compile(r"^\s*exitcode\s*: (-?\d+) \(pid: (\d+)\)")
_SIGNAL: Final = re.compile(r"Signal (\d+) \(SIG\w+\) received by PID (\d+)")
_CLOSING: Final = re.compile(r"Sending process (\d+) closing signal SIG|Unable to shutdown process (\d+) via")


@dataclass(frozen=True, slots=True)
class Piece:
    """One rank's record within a physical line. `rank` None where the line does not say; local: to be shifted by the node's offset."""

    text: str
    rank: int | None = None
    local: bool = False

    def global_rank(self, offset: int | None) -> int | None:
        """The rank among all nodes; `offset` is this node's first rank, None while not known."""
        if self.rank is None or not self.local:
            return self.rank
        return None if offset is None else self.rank + offset


@dataclass(frozen=True, slots=True)
class Report:
    """torchrun says that the worker `pid` ended with `code`."""

    pid: int
    code: int


@dataclass(frozen=True, slots=True)
class Closing:
    """torchrun says that it is ending the worker `pid`."""

    pid: int


def pieces(line: str) -> list[Piece]:
    """`line` cut before each rank's prefix; the texts joined are the line again."""
    matches = list(_PREFIX.finditer(line))
    if not matches:
        return [Piece(line)]
    head = [Piece(line[: matches[0].start()])] if matches[0].start() else []
    ends = [m.start() for m in matches[1:]] + [len(line)]
    return head + [Piece(line[m.start() : end], int(m[2]), m[1] == "default") for m, end in zip(matches, ends, strict=True)]


def torchrun_word(line: str) -> Report | Closing | None:
    """What torchrun tells in `line` of one of its workers, if anything."""
    if m := _CLOSING.search(line):
        return Closing(int(m[1] or m[2]))
    if m := _FAILED.search(line):
        return Report(int(m[3]), int(m[1]))
    if m := _EXITCODE.search(line):
        return Report(int(m[2]), int(m[1]))
    if m := _SIGNAL.search(line):
        return Report(int(m[2]), -int(m[1]))
    return None


class Splitter:
    """Cuts a stream of bytes into lines at line feeds and carriage returns (progress bars); empty ones are left out."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that `data` completes; one that grows beyond MAX_LINE is given in parts."""
        *whole, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        while len(self._rest) >= MAX_LINE:
            whole.append(self._rest[:MAX_LINE])
            self._rest = self._rest[MAX_LINE:]
        return [part.decode("utf-8", "replace") for part in whole if part]

    def finish(self) -> list[str]:
        """What is left without a line end."""
        rest, self._rest = self._rest, b""
        return [rest.decode("utf-8", "replace")] if rest else []
