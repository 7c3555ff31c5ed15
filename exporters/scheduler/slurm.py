"""Slurm as the agent asks it: this node and its jobs, or the whole cluster."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from exporters.collector import Observation, Site
from exporters.host.groups import Groups
from exporters.scheduler.book import Book
from exporters.sources.command import output
from exporters.sources.scheduler import slurm
from exporters.sources.scheduler.cluster import SchedJob
from exporters.sources.scheduler.slurmrestd import Slurmrestd
from pipeline.clock import monotonic

MOST_LOCAL: Final = 32  # jobs of this node that are asked after, each by itself
_SHARE: Final = 0.8  # of the collector's deadline, for all questions together
_JOB: Final = re.compile(r"/job_(\d+)(?:/|$)")


class SlurmWatch:
    """Asks at each look. `whole`: after all nodes and jobs, else after this node and what runs on it."""

    def __init__(self, site: Site, whole: bool, clock: Callable[[], float] = monotonic) -> None:
        self._site, self._clock = site, clock
        self._until = 0.0
        self._scontrol = slurm.Scontrol(self._ask)
        one = site.settings.slurm
        self._rest = Slurmrestd(one.url, one.version, one.user, one.token_file) if one.url else None
        self._look = self._cluster if whole else self._here
        self._groups = Groups(site)
        self._book = Book("slurm", site.node)

    def look(self, now: datetime) -> Sequence[Observation]:
        """What Slurm says. Raises OSError where it does not answer in time."""
        self._until = self._clock() + self._site.settings.timeout * _SHARE
        nodes, jobs = self._look()
        runs = self._runs(now.timestamp())
        known = [replace(job, run=job.run or runs.get(job.id, "")) for job in jobs]
        return [*self._book.nodes(slurm.nodes(nodes), now), *self._book.jobs(known, now)]

    def _cluster(self) -> tuple[list[slurm.Record], list[SchedJob]]:
        return self._show("nodes"), slurm.jobs(self._show("jobs"))

    def _show(self, what: str) -> list[slurm.Record]:
        return self._rest.show(what, self._left()) if self._rest else self._scontrol.show(what)

    def _here(self) -> tuple[list[slurm.Record], list[SchedJob]]:
        nodes = self._scontrol.one("node", self._site.node)
        try:
            mine = slurm.local_jobs(self._ask(("listpids",)))
        except OSError:  # no slurmd runs here, or it holds nothing
            mine = []
        records = [record for job in mine[:MOST_LOCAL] for record in self._scontrol.one("job", job)]
        return nodes, slurm.jobs(records)

    def _runs(self, now: float) -> Mapping[str, str]:
        """The runs of the jobs that ranks of this node are in, by the control groups that Slurm makes for each job."""
        groups = self._groups.found(now)
        return {match[1]: run for run, path in groups if (match := _JOB.search(path))}

    def _ask(self, words: tuple[str, ...]) -> str:
        return output((self._site.settings.slurm.scontrol, *words), self._left(), slurm.MOST)

    def _left(self) -> float:
        return max(0.1, self._until - self._clock())
