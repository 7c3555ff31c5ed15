"""What the schedulers say of nodes and jobs (`agent.schedulers` in the settings; none by default)."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final, Protocol

from exporters.collector import Observation, Site
from exporters.scheduler.kube import KubeWatch
from exporters.scheduler.slurm import SlurmWatch

EVERY: Final = 5.0  # seconds between two looks
_log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Looks at one scheduler."""

    def look(self, now: datetime) -> Sequence[Observation]:
        """How things are there, and what has happened since the last look. Raises OSError where it does not answer."""
        ...


WATCHERS: Final[Mapping[str, Callable[[Site], Watcher]]] = {
    "slurm": lambda site: SlurmWatch(site, whole=False),
    "slurm-cluster": lambda site: SlurmWatch(site, whole=True),
    "kubernetes": KubeWatch,
}


class SchedulerCollector:
    """Looks at every scheduler of the settings; one that does not answer hides no other."""

    def __init__(self, site: Site) -> None:
        self._watchers = {name: WATCHERS[name](site) for name in site.settings.schedulers}
        self._errors: dict[str, str] = {}

    def absent(self) -> str:
        """No scheduler is to be looked at."""
        return "" if self._watchers else "agent.schedulers names none"

    def collect(self, now: datetime) -> Iterator[Observation]:
        """What the schedulers say. Raises OSError where none of them answers."""
        answered = False
        for name, watcher in self._watchers.items():
            try:
                found, error = watcher.look(now), ""
            except OSError as e:
                found, error = (), str(e)
            if error != self._errors.get(name, ""):
                _log.warning("scheduler %s: %s", name, error or "answers again")
            self._errors[name] = error
            answered |= not error
            yield from found
        if self._watchers and not answered:
            raise OSError("; ".join(self._errors.values()))

    def close(self) -> None:
        """Ends the watches."""
        for watcher in self._watchers.values():
            if isinstance(watcher, KubeWatch):
                watcher.close()
