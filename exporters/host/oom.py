"""Processes killed for want of memory, told within a second: the kernel's counts, of the ranks' control groups and of the node."""

from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from typing import Final

from exporters.collector import Site
from exporters.host.groups import Groups
from exporters.kernel.ranks import RankBook
from exporters.sources import cgroups, procfs
from exporters.sources.kernel import kmsg
from pipeline.catalog.events import OOM_KILL
from pipeline.records import Event

EVERY: Final = 1.0  # seconds between two looks: a killed rank's cause is to be known when its end is


class OomCollector:
    """Looks at the counts. A count that is seen for the first time says nothing yet: what it holds happened before."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._groups = Groups(site)
        self._ranks = RankBook(site.ranks, site.proc)
        self._boot = procfs.boot_id(site.proc)
        self._counts: dict[tuple[str, str], int] = {}

    def collect(self, now: datetime) -> Iterator[Event]:
        """The kills since the last look."""
        groups = self._groups.found(now.timestamp())
        self._ranks.look(now.timestamp())
        for key in self._counts.keys() - groups.keys() - {("", "")}:
            del self._counts[key]
        for (run, path), group in groups.items():
            memory = cgroups.memory(group)
            if kills := self._more((run, path), memory.oom_kills if memory else None):
                yield self._event(now, kills, run, path)
        if kills := self._more(("", ""), procfs.oom_kills(self._site.proc)):
            yield self._event(now, kills, "", "")

    def _more(self, key: tuple[str, str], count: int | None) -> int:
        """By how much a count grew; 0 where that is not known."""
        if count is None:
            return 0
        before, self._counts[key] = self._counts.get(key), count
        return max(0, count - before) if before is not None else 0

    def _event(self, now: datetime, kills: int, run: str, path: str) -> Event:
        what = f"{self._site.node}\x1f{self._boot}\x1f{run}\x1f{path}\x1f{self._counts[run, path]}"
        message = f"in control group {path} of run {run}" if run else f"on {self._site.node}"
        return Event(
            id=blake2b(what.encode(errors="replace"), digest_size=16).hexdigest(),
            at=now,
            kind=OOM_KILL.name,
            layer=OOM_KILL.layer.value,
            severity=OOM_KILL.severity.value,
            node=self._site.node,
            run=run,
            code="cgroup" if run else "node",
            message=message,
            count=kills,
            attrs=self._of_group(run, path) if run else self._of_node(),
        )

    def _of_group(self, run: str, path: str) -> dict[str, str]:
        return {"cgroup": path, "ranks": ",".join(map(str, self._groups.ranks_in(run, path)))}

    def _of_node(self) -> dict[str, str]:
        """Of which runs the kernel's log would name a rank: that it was one of theirs is not to be guessed from the count."""
        known = self._ranks.runs() if kmsg.live(self._site.kmsg) else ""
        return {"known_runs": known} if known else {}
