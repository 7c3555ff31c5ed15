"""What may still be kept in the folders that the user named: quotas, of which `df` says nothing on most file systems."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources.storage.mounts import Prober
from pipeline.catalog.metrics import QUOTA

EVERY: Final = 10.0  # seconds


class QuotaCollector:
    """A reading for each quota that bounds what is written to a folder of `agent.probe_paths`: its owner's, its project's, its own."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._folders = [str(folder) for folder in site.settings.probe_paths]
        self._prober = Prober(site.quotas(), site.probe_timeout)

    def absent(self) -> str:
        """No folder is named, or none of them has a quota."""
        return "no folder of agent.probe_paths has a quota" if self._folders else "agent.probe_paths names no folder"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The quotas' readings; none of a folder that does not answer, which the probe of its mount tells of."""
        for folder, probe in (self._prober.probe(self._folders) if self._folders else {}).items():
            for quota in probe.found.found if probe.found else ():
                yield Reading(
                    QUOTA,
                    {"node": self._site.node, "folder": folder, "of": quota.of},
                    {
                        "quota.used": quota.used,
                        "quota.limit": quota.limit,
                        "quota.files": quota.files,
                        "quota.files.limit": quota.files_limit,
                    },
                )

    def close(self) -> None:
        """Lets go of the probes."""
        self._prober.close()
