"""Persistent volumes of Kubernetes, by claim: how full they are and whether their driver holds them for well."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from exporters.collector import Reading, Site
from exporters.sources.storage import kubelet
from exporters.sources.storage.kubelet import Door, Volume
from pipeline.catalog.metrics import VOLUME

EVERY: Final = 10.0  # seconds; the kubelet itself measures a volume once a minute


class VolumeCollector:
    """A reading for each claim ("namespace/name") that pods of this node use, as their kubelet tells it; none where no kubelet is named."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def absent(self) -> str:
        """No kubelet is named, or no pod of its node has a claim."""
        return "no pod of this node has a volume claim" if self._site.settings.kubelet_url else "agent.kubelet_url names no kubelet"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The volumes' readings. Raises OSError where the kubelet does not answer, or what it says makes no sense."""
        settings = self._site.settings
        door = Door(settings.kubelet_url, settings.kubelet_token_file, settings.kubelet_ca_file, settings.timeout / 2)
        summary = self._site.kubelet(door)
        for one in kubelet.volumes(summary) if summary is not None else ():
            yield Reading(VOLUME, {"node": self._site.node, "claim": f"{one.namespace}/{one.claim}"}, _values(one))


def _values(one: Volume) -> dict[str, float | int | None]:
    return {
        "volume.size": one.size,
        "volume.free": one.free,
        "volume.used": one.used,
        # A file system without a fixed number of inodes says 0 of 0: that is absent.
        "volume.inodes": one.inodes or None,
        "volume.inodes_free": one.inodes_free if one.inodes else None,
        "volume.healthy": None if one.healthy is None else int(one.healthy),
        "volume.pods": one.pods,
    }
