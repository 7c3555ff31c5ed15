"""The kernel's log as systemd's journal keeps it, for where /dev/kmsg may not be read: a `journalctl` that follows. Reads never wait."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from exporters.sources.command import end, ended, output
from exporters.sources.kernel.kmsg import MOST, Read
from exporters.sources.kernel.log import MAX_TEXT, KernelRecord

_COMMAND: Final = ("--dmesg", "--boot", "--output=json", "--quiet", "--no-pager")
_FIRST_WITHIN: Final = 2.0  # seconds
_CHUNK: Final = 1 << 20  # bytes a call
_LONGEST: Final = 256 << 10  # bytes of an entry


def parse(entry: bytes) -> KernelRecord | None:
    """An entry as `journalctl --output=json` writes it; None where it is none, or has no text or no time.

    `sequence` is when journald received it, microseconds since 1970: the journal does not keep the kernel's own numbers.
    """
    try:
        told = json.loads(entry)
    except (ValueError, RecursionError):
        return None
    text = _text(told.get("MESSAGE")) if isinstance(told, dict) else None
    received = _number(told.get("__REALTIME_TIMESTAMP")) if text is not None else None
    if text is None or received is None:
        return None
    clock = _number(told.get("_SOURCE_MONOTONIC_TIMESTAMP"))
    level, facility = _number(told.get("PRIORITY")), _number(told.get("SYSLOG_FACILITY"))
    return KernelRecord(
        text[:MAX_TEXT],
        received,
        level=6 if level is None else level & 7,
        facility=facility or 0,
        clock=None if clock is None else clock / 1e6,
        at=received / 1e6,
    )


class Journal:
    """The kernel's part of this boot's journal. `after` is when the last entry that was read was received (microseconds since 1970); given
    as None: only what comes from now on, as -1: all of this boot. Raises OSError where there is no journalctl, or it cannot read any."""

    saved: Final = False
    source: Final = "systemd's journal"
    cursor: Final = "kernel.journal"

    def __init__(self, path: Path, after: int | None) -> None:
        program = shutil.which("journalctl")
        if program is None:
            raise FileNotFoundError(2, "there is no journalctl", str(path))
        output(("journalctl", *_COMMAND, "--lines=1"), _FIRST_WITHIN, _CHUNK)  # one that follows says too late that there is nothing
        since = ("--lines=0",) if after is None else ("--lines=all", *((f"--since=@{after // 1_000_000}",) if after > 0 else ()))
        self.after = -1 if after is None else after
        self._process = subprocess.Popen(  # it ends by itself soon after us: nobody reads what it writes
            [program, *_COMMAND, "--follow", *since],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        if self._process.stdout is None:
            raise OSError("no pipe")
        self._fd = self._process.stdout.fileno()
        os.set_blocking(self._fd, False)
        self._rest = b""

    def close(self) -> None:
        """Ends journalctl, and what it began."""
        end(self._process)
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def read(self) -> Read:
        """What has been logged since the last call. Raises OSError once journalctl has ended."""
        try:
            raw = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return Read(())
        if not raw:
            raise OSError(f"journalctl {ended(self._process.wait())}")
        *lines, self._rest = (self._rest + raw).split(b"\n")
        malformed = 0
        if len(self._rest) > _LONGEST:
            self._rest, malformed = b"", 1
        records: list[KernelRecord] = []
        for line in filter(None, lines):
            record = parse(line)
            if record is None:
                malformed += 1
            elif record.sequence > self.after:
                records.append(record)
        self.after = max((record.sequence for record in records), default=self.after)
        return Read(tuple(records[:MOST]), len(records[MOST:]), malformed, all=len(raw) < _CHUNK)


def _text(message: object) -> str | None:
    """The text; what is no UTF-8 stands as a list of bytes."""
    if isinstance(message, str):
        return message
    if isinstance(message, list) and all(type(byte) is int and 0 <= byte < 256 for byte in message):
        return bytes(message).decode("utf-8", "replace")
    return None


def _number(word: object) -> int | None:
    return int(word) if isinstance(word, str) and word.isascii() and word.isdigit() and len(word) < 20 else None
