"""A record of the kernel's log, and how its text forms are read. Pure.

/dev/kmsg gives one record a read (Documentation/ABI/testing/dev-kmsg): `prefix,sequence,microseconds,flags[,more];text`, then
lines of `KEY=value` that begin with a blank. Unprintable bytes and the backslash stand as \\xNN.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

KERNEL, USER = 0, 1  # facilities: the kernel's own lines, and those that were written into its log
MAX_TEXT: Final = 4096  # characters of a line that are kept; the kernel's own limit is about a thousand
_HEAD: Final = re.compile(rb"(\d{1,10}),(\d{1,20}),(\d{1,20}),([^,;]*)(?:,[^;]*)?;")
_ESCAPE: Final = re.compile(rb"\\x([0-9a-fA-F]{2})")
_PRINTED: Final = re.compile(rb"(?:<(\d{1,10})>)?\[ {0,8}(\d{1,12})\.(\d{6})\](?:\[ *[TC]\d{1,10}\])? ?(.*)", re.DOTALL)
_SYSLOG: Final = re.compile(rb"\S.{0,200}? kernel: (?:\[ {0,8}(\d{1,12})\.(\d{6})\] )?(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KernelRecord:
    """A line of the log. `clock` is seconds on the kernel's clock, None where it was not told; `sequence` counts records since boot.

    `at` is when it was received, seconds since 1970, where another log keeps that. `flag` is "-", or of fragments "c" and "+".
    """

    text: str
    sequence: int
    level: int = 6  # syslog's, 0 is the worst
    facility: int = KERNEL
    clock: float | None = None
    at: float | None = None
    flag: str = "-"
    fields: Mapping[str, str] = field(default_factory=dict)


def parse(record: bytes) -> KernelRecord | None:
    """One record as /dev/kmsg gives it; None where it is malformed."""
    head = _HEAD.match(record)
    if head is None:
        return None
    prefix, sequence, microseconds = (int(head[n]) for n in (1, 2, 3))
    text, *lines = record[head.end() :].removesuffix(b"\n").split(b"\n")
    named = (line[1:].partition(b"=") for line in lines if line.startswith(b" ") and b"=" in line)
    fields = {_text(key): _text(value) for key, _, value in named}
    return KernelRecord(
        _text(text), sequence, prefix & 7, prefix >> 3, microseconds / 1e6, flag=head[4].decode("latin-1")[:1] or "-", fields=fields
    )


def parse_line(line: bytes, number: int) -> KernelRecord | None:
    """A line of a saved log, the `number`th: a record of /dev/kmsg, what dmesg printed, or a kernel's line of syslog. None: neither."""
    if record := parse(line):
        return record
    if found := _PRINTED.fullmatch(line):
        prefix = int(found[1] or 6)
        return KernelRecord(_text(found[4]), number, prefix & 7, prefix >> 3, _seconds(found[2], found[3]))
    if found := _SYSLOG.fullmatch(line):
        return KernelRecord(_text(found[3]), number, clock=_seconds(found[1], found[2]) if found[1] else None)
    return None


def joined(records: list[KernelRecord]) -> list[KernelRecord]:
    """The records with the fragments of one line put together: "c" begins or goes on, "+" goes on."""
    whole: list[KernelRecord] = []
    for record in records:
        before = whole[-1] if whole else None
        goes_on = before is not None and (record.flag == "+" or (record.flag == "c" and before.flag == "c"))
        if before is not None and goes_on and (before.level, before.facility) == (record.level, record.facility):
            whole[-1] = replace(before, text=(before.text + record.text)[:MAX_TEXT], sequence=record.sequence)
        else:
            whole.append(record)
    return whole


def _text(raw: bytes) -> str:
    return _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]), raw[: 4 * MAX_TEXT]).decode("utf-8", "replace")[:MAX_TEXT]


def _seconds(whole: bytes, micros: bytes) -> float:
    return int(whole) + int(micros) / 1e6
