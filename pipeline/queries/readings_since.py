"""What the nodes' agents read lately, of the families that are asked for: a question each, as most clusters have a few of them only."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pipeline.catalog.metrics import FAMILIES, Family
from pipeline.queries import sql
from pipeline.store import Store

_BY_NAME: Mapping[str, Family] = {f.name: f for f in FAMILIES}


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """A device's reading. `values` are by metric name; None is absent."""

    family: Family
    device_id: int
    node: str
    at: datetime
    values: Mapping[str, float | None]


def readings_since(store: Store, families: Iterable[Family], since: datetime, until: datetime) -> list[DeviceReading]:
    """The readings after `since`, up to `until` (a clock that ran ahead is left out), of each family oldest first."""
    given = {"since": since, "until": until}
    asked = (store.query(sql("readings_since"), {**given, "family": family.name}) for family in families)
    return [reading for rows in asked for reading in as_readings(rows)]


def as_readings(rows: Iterable[Mapping[str, Any]]) -> list[DeviceReading]:
    """Rows whose `readings` are a JSON array of the family's metrics, in the catalogue's order."""
    return [_reading(_BY_NAME[row["family"]], row) for row in rows]


def _reading(family: Family, row: Mapping[str, Any]) -> DeviceReading:
    told = json.loads(row["readings"])
    values = told.values() if isinstance(told, dict) else told  # some servers name a tuple's parts
    named = {metric.name: None if value is None else float(value) for metric, value in zip(family.metrics, values, strict=True)}
    return DeviceReading(family, row["device_id"], row["node"], row["ts"], named)
