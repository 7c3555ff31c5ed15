"""What the kernel saved of its crash before the machine was started anew: why it came down, told once by the boot after."""

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
from exporters.sources.kernel.pstore import Crash, Saved
from pipeline.catalog.events import KERNEL_CRASHED, KERNEL_OOPS
from pipeline.records import Event

EVERY: Final = 60.0  # seconds between two looks: files are there from the boot on, or some seconds after the backend is loaded
HISTORY: Final = 86400.0  # seconds before this boot: a crash before that is old news to an agent that is new on a node
_LOOKED: Final = "pstore.looked"
_TOLD: Final = "pstore.told"


class PstoreCollector:
    """Tells of each crash once, known by the file of its first part: `kept` says which were told. It never takes a file away."""

    def __init__(self, site: Site) -> None:
        self._site, self._folder = site, site.sys / "fs/pstore"
        self._new_here = _LOOKED not in site.kept
        self._kept = {key: value for key, value in site.kept.items() if key.startswith(f"{_TOLD}/")}
        self._read: frozenset[Saved] = frozenset()  # what was looked into and holds nothing new

    def absent(self) -> str:
        """No place to look, none that may be read, or nothing in it."""
        try:
            return "" if pstore.files(self._folder) else "no crash saved in sys/fs/pstore"
        except FileNotFoundError:
            return "no sys/fs/pstore"
        except OSError as e:
            return f"sys/fs/pstore cannot be read: {e.strerror}"

    def collect(self, now: datetime) -> Iterator[Event]:
        """The crashes that were not told yet."""
        try:
            files = frozenset(pstore.files(self._folder))
        except OSError:
            return
        there = {self._key(file) for file in files}
        self._kept = {key: at for key, at in self._kept.items() if key in there}  # what was taken away is not found again
        if not files <= self._read:
            parts, read = [], set()
            for file in files:
                with suppress(OSError):  # one that is gone or cannot be read is tried again
                    parts.append(pstore.read(self._folder, file))
                    read.add(file)
            for crash in pstore.crashes(part for part in parts if part):
                key = self._key(crash.file)
                if key not in self._kept and not self._is_history(crash.file):
                    yield self._event(now, crash)
                self._kept[key] = max(0, crash.file.at)
            self._read = frozenset(read)
        self._new_here = False

    def kept(self) -> Mapping[str, int]:
        """The crashes that were told, or were history when the first agent came."""
        return self._kept if self._new_here else {_LOOKED: 1, **self._kept}

    def _is_history(self, file: Saved) -> bool:
        boot = procfs.cpu(self._site.proc, self._site.ticks).boot if self._new_here else None
        return boot is not None and file.at < boot - HISTORY

    def _key(self, file: Saved) -> str:
        return f"{_TOLD}/{_digest(_identity(file), 8)}"

    def _event(self, now: datetime, crash: Crash) -> Event:
        file = crash.file
        return Event(
            id=_digest(f"{self._site.node}\x1fpstore\x1f{_identity(file)}", 16),
            at=now,
            kind=KERNEL_CRASHED.name,
            layer=KERNEL_CRASHED.layer.value,
            severity=KERNEL_CRASHED.severity.value,
            node=self._site.node,
            code=crash.why,
            message=telling(crash),
            attrs={"file": str(Path("/sys/fs/pstore") / file.name), "crashed_at": _iso(file.at)},
        )


def telling(crash: Crash) -> str:
    """The line that says why: of a panic its own, else the first that tells of a defect; without any, what is known."""
    found = [(line, seen.code) for line in crash.lines if (seen := recognise(line)) and seen.kind is KERNEL_OOPS]
    own = [line for line, code in found if code == crash.why == "panic"]
    return next(iter([*own, *(line for line, _ in found)]), f"{crash.why}, of which no line was saved that says why")


def _identity(file: Saved) -> str:
    return f"{file.name}\x1f{file.at}\x1f{file.size}"


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode(errors="replace"), digest_size=size).hexdigest()


def _iso(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""
