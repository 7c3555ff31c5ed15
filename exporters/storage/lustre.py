"""Lustre: what its client counts for each file system, and how it stands with each server's target."""

from collections.abc import Iterator
from datetime import datetime

from exporters.collector import Reading, Site
from exporters.sources.storage import lustre
from exporters.sources.storage.lustre import FileSystem, Target
from pipeline.catalog.metrics import LUSTRE, LUSTRE_TARGET


class LustreCollector:
    """Readings from the client's counts alone: nothing is asked of a server."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def absent(self) -> str:
        """No client of Lustre."""
        return "no Lustre file system is mounted"

    def collect(self, now: datetime) -> Iterator[Reading]:
        """The readings of each file system and target; none where there is no Lustre."""
        node, proc, sys = self._site.node, self._site.proc, self._site.sys
        for one in lustre.file_systems(proc, sys):
            yield Reading(LUSTRE, {"node": node, "filesystem": one.name}, _file_system(one))
        for target in lustre.targets(proc, sys):
            yield Reading(LUSTRE_TARGET, {"node": node, "target": target.name}, _target(target), {"kind": target.kind})


def _file_system(one: FileSystem) -> dict[str, float | int | None]:
    return {
        "lustre.read": one.read,
        "lustre.written": one.written,
        "lustre.reads": one.calls.get("read_bytes"),
        "lustre.writes": one.calls.get("write_bytes"),
        "lustre.opens": one.calls.get("open"),
        "lustre.closes": one.calls.get("close"),
        "lustre.syncs": one.calls.get("fsync"),
        "lustre.lookups": one.calls.get("getattr"),
    }


def _target(one: Target) -> dict[str, float | int | None]:
    return {
        "lustre_target.connected": None if one.connected is None else int(one.connected),
        "lustre_target.in_flight": one.in_flight,
        "lustre_target.timeouts": one.timeouts,
        "lustre_target.wait": one.wait,
        "lustre_target.connects": one.connects,
        "lustre_target.size": one.size,
        "lustre_target.free": one.free,
    }
