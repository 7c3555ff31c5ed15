"""Of each node the file system that is nearest to being full."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.catalog.faults import FILESYSTEM_FULL
from pipeline.catalog.rules import rules_of
from pipeline.queries import sql
from pipeline.store import Store

NEVER: Final[Mapping[str, str]] = rules_of(FILESYSTEM_FULL)[0].never
"""The file systems that are left alone: those that the rule about full ones leaves alone."""


@dataclass(frozen=True, slots=True)
class FullestMount:
    """Of `node` the fullest file system; `used` is a share, 0 to 1."""

    node: str
    mount_point: str
    used: float


def mounts_fullest(store: Store, since: datetime, until: datetime) -> list[FullestMount]:
    """One for each node whose agent told of a file system after `since`, up to `until`; one that cannot be written to is never full."""
    rows = store.query(sql("mounts_fullest"), {"since": since, "until": until})
    found = ((row["node"], next((m for m in map(tuple, row["mounts"]) if is_real(m[0], m[1])), None)) for row in rows)
    return [FullestMount(node, mount[0], mount[2]) for node, mount in found if mount]


def is_real(mount_point: str, kind: str) -> bool:
    """Whether it is of interest how full this file system is."""
    labels = {"mount_point": mount_point, "type": kind}
    return not any(re.fullmatch(pattern, labels[label]) for label, pattern in NEVER.items())
