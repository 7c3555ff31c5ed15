"""Errors of Ascend's libraries, from the logs of their processes: of collectives (HCCL), and of everything else on the NPU."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Final

from exporters.collector import Site
from exporters.kernel.floods import Floods
from exporters.kernel.ranks import RankBook
from exporters.labels import clean
from exporters.sources.gpu.plog import Line, Plogs
from pipeline.catalog.event import EventKind
from pipeline.catalog.events import HCCL_ERROR, NPU_ERROR
from pipeline.clock import monotonic
from pipeline.records import Event

EVERY: Final = 2.0  # seconds between two looks
_LOOKED: Final = "plog.looked"
_AT: Final = "plog/"
_OLD: Final = timedelta(days=1)  # a line's own time is not believed beyond
_COLLECTIVES: Final = frozenset({"HCCL", "HCCP"})
# Error codes as CANN's documentation has them; most lines name none, but say what each stands for.
_NAMED: Final = re.compile(r"\bE[A-Z]\d{4}\b")
_WORDS: Final = (
    ("EI0002", re.compile(r"\[TaskExecStage\]|Task run failed|notify wait", re.IGNORECASE)),
    ("EI0004", re.compile(r"\[RanktableCheck\]|ranktable", re.IGNORECASE)),
    ("EI0006", re.compile(r"socket.{0,60}time(d )?out|LinkEstablish", re.IGNORECASE)),
    ("EI0019", re.compile(r"listen on ip.{0,80}fail", re.IGNORECASE)),
    ("cqe", re.compile(r"error cqe", re.IGNORECASE)),
)


class AscendLogCollector:
    """An event for each kind of error that a process writes at a time: the dozens of lines that follow one are its count."""

    def __init__(self, site: Site) -> None:
        self._site = site
        offsets = {key.removeprefix(_AT): value for key, value in site.kept.items() if key.startswith(_AT)}
        self._logs = Plogs(site.settings.ascend_logs, offsets, only_new=_LOOKED not in site.kept)
        self._gone: set[str] = set()
        self._absent = ""
        self._ranks = RankBook(site.ranks, site.proc)
        self._floods = Floods()
        self._sequence = 0

    def absent(self) -> str:
        """No such folder, or one that nobody named and that is not ours to read."""
        return self._absent

    def collect(self, now: datetime) -> Iterator[Event]:
        """The errors since the last look. Raises OSError where the folder cannot be read; one that is not there is none, nor is the usual
        one, which is root's, to an agent that is not root."""
        settings, clock = self._site.settings, monotonic()
        self._absent = ""
        self._ranks.look(clock)
        before = set(self._logs.offsets)
        try:
            for name, lines in self._logs.read():
                for event in self._events(name, lines, now):
                    self._sequence += 1
                    if (one := self._floods.take(event, self._sequence, clock)) is not None:
                        yield one
        except FileNotFoundError:
            self._absent = f"no logs of Ascend's libraries in {settings.ascend_logs}"
            return
        except PermissionError:
            if "ascend_logs" in settings.model_fields_set:
                raise
            self._absent = f"logs of Ascend's libraries in {settings.ascend_logs} would not be ours to read"
            return
        self._gone = before - self._logs.offsets.keys()
        yield from self._floods.due(clock)

    def kept(self) -> Mapping[str, int | None]:
        """How far each file was read; None for those that are gone."""
        looked = {_LOOKED: 1} if self._logs.looked else {}
        return {**looked, **{_AT + name: None for name in self._gone}, **{_AT + name: at for name, at in self._logs.offsets.items()}}

    def _events(self, name: str, lines: Sequence[Line], now: datetime) -> Iterator[Event]:
        together: dict[tuple[EventKind, str], list[Line]] = {}
        for line in lines:
            kind = HCCL_ERROR if line.module in _COLLECTIVES else NPU_ERROR
            together.setdefault((kind, code_of(line.text)), []).append(line)
        for kind in (HCCL_ERROR, NPU_ERROR):  # what names no error tells how one was passed on
            coded = [key for key in together if key[0] is kind and key[1]]
            if coded and (kind, "") in together:
                together[coded[0]] += together.pop((kind, ""))
        for (kind, code), some in together.items():
            yield self._event(name, kind, code, some, now)

    def _event(self, name: str, kind: EventKind, code: str, lines: Sequence[Line], now: datetime) -> Event:
        first = lines[0]
        member = self._ranks.of(first.pid)
        what = f"{self._site.node}\x1f{name}\x1f{kind.name}\x1f{code}\x1f{first.at}\x1f{first.text}"
        at = first.at if first.at is not None and now - _OLD <= first.at <= now + timedelta(minutes=1) else now
        told = {"module": first.module, "pid": first.pid, "comm": first.process, "file": name, "place": first.place}
        return Event(
            id=blake2b(what.encode(errors="replace"), digest_size=16).hexdigest(),
            at=min(at, now),
            kind=kind.name,
            layer=kind.layer.value,
            severity=kind.severity.value,
            node=self._site.node,
            run=member.rank.run if member else "",
            rank=member.rank.rank if member else None,
            code=code,
            message=clean(first.text),
            count=len(lines),
            attrs={key: clean(value) for key, value in told.items() if value},
        )


def code_of(text: str) -> str:
    """The error that a line tells of, by CANN's code; "" where it tells of none."""
    if named := _NAMED.search(text):
        return named[0]
    return next((code for code, words in _WORDS if words.search(text)), "")
