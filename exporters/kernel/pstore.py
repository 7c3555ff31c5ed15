"""What the kernel saved of its crash before the machine was started anew: why it came down, told once by the boot after."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Final

from exporters.collector import Site
from exporters.kernel.lines import recognise
from exporters.sources import procfs
from exporters.sources.kernel import pstore
from exporters.sources.kernel.pstore import Crash, Part, Saved
from pipeline.catalog.events import KERNEL_CRASHED, KERNEL_OOPS
from pipeline.records import Event

EVERY: Final = 60.0  # seconds between two looks: files are there from the boot on, or some seconds after the backend is loaded
HISTORY: Final = 86400.0  # seconds before this boot: a crash before that is old news to an agent that is new on a node
_LOOKED: Final = "pstore.looked"
_TOLD: Final = "pstore.told"
_EFI: Final = re.compile(r"dmesg-efi(?:_pstore)?-(\d{10})\d+")


class PstoreCollector:
    """Tells of each crash once, known by what its first part says: `kept` says which were told. It never takes a file away."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._new_here = _LOOKED not in site.kept
        self._kept = {key: value for key, value in site.kept.items() if key.startswith(f"{_TOLD}/")}
        self._parts: dict[Saved, Part | None] = {}

    def absent(self) -> str:
        """No place to look, none that may be read, or nothing in it."""
        try:
            return "" if self._files() else "no crash saved in sys/fs/pstore, and none that systemd-pstore moved from there"
        except FileNotFoundError:
            return "no sys/fs/pstore"
        except OSError as e:
            return f"sys/fs/pstore cannot be read: {e.strerror}"

    def collect(self, now: datetime) -> Iterator[Event]:
        """The crashes that were not told yet."""
        try:
            files = self._files()
        except OSError:
            return
        self._parts = {file: self._parts[file] for file in files if file in self._parts}
        for file in files:
            if file not in self._parts:
                with suppress(OSError):  # one that is gone or cannot be read is tried again
                    self._parts[file] = pstore.read(file)
        found = {self._key(crash): crash for crash in pstore.crashes(filter(None, self._parts.values()))}
        for key, crash in found.items():
            if key not in self._kept and not self._is_history(crash.file):
                yield self._event(now, crash)
        unread = len(self._parts) < len(files)
        # What was taken away is not found again; what could not be read now may be.
        self._kept = {**(self._kept if unread else {}), **{key: max(0, crash.file.at) for key, crash in found.items()}}
        self._new_here = False

    def kept(self) -> Mapping[str, int]:
        """The crashes that were told, or were history when the first agent came."""
        return self._kept if self._new_here else {_LOOKED: 1, **self._kept}

    def _files(self) -> list[Saved]:
        """Raises OSError where neither place can be read."""
        found: list[Saved] = []
        with suppress(OSError):
            found = pstore.files(self._site.moved_crashes, depth=2)
        try:
            return [*pstore.files(self._site.sys / "fs/pstore"), *found]
        except OSError:
            if found:
                return found
            raise

    def _is_history(self, file: Saved) -> bool:
        boot = procfs.cpu(self._site.proc, self._site.ticks).boot if self._new_here else None
        return boot is not None and file.at < boot - HISTORY

    def _key(self, crash: Crash) -> str:
        return f"{_TOLD}/{crash.id[:16]}"

    def _event(self, now: datetime, crash: Crash) -> Event:
        file, moved = crash.file, Path(crash.file.folder) != self._site.sys / "fs/pstore"
        where = Path(file.folder) if moved else Path("/sys/fs/pstore")
        crashed_at = _at(file.name) or (0 if moved else file.at)
        return Event(
            id=blake2b(f"{self._site.node}\x1fpstore\x1f{crash.id}".encode(errors="replace"), digest_size=16).hexdigest(),
            at=now,
            kind=KERNEL_CRASHED.name,
            layer=KERNEL_CRASHED.layer.value,
            severity=KERNEL_CRASHED.severity.value,
            node=self._site.node,
            code=crash.why,
            message=telling(crash),
            attrs={"file": str(where / file.name), "crashed_at": _iso(crashed_at) if crashed_at else ""},
        )


def telling(crash: Crash) -> str:
    """The line that says why: of a panic its own, else the first that tells of a defect; without any, what is known."""
    found = [(line, seen.code) for line in crash.lines if (seen := recognise(line)) and seen.kind is KERNEL_OOPS]
    own = [line for line, code in found if code == crash.why == "panic"]
    return next(iter([*own, *(line for line, _ in found)]), f"{crash.why}, of which no line was saved that says why")


def _at(name: str) -> int | None:
    """When it was saved, where the name says so: EFI's begin with the seconds since 1970."""
    found = _EFI.match(name)
    return int(found[1]) if found else None


def _iso(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
