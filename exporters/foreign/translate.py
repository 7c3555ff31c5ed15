"""A page of another program as readings of the catalogue's families, and what the catalogue does not know. Pure."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from exporters.collector import Reading
from exporters.foreign.names import Name, NameMap
from exporters.labels import clean
from exporters.sources.prometheus_text import Sample
from pipeline.catalog.metrics import ColumnType, Family
from pipeline.catalog.runs import unfit_node


@dataclass(slots=True)
class _Device:
    family: Family
    identity: Mapping[str, str]
    attributes: dict[str, str]
    since: float | None
    values: dict[str, float] = field(default_factory=dict)


def translate(
    samples: Sequence[Sample], maps: Sequence[NameMap], given: Mapping[str, str], node: str
) -> tuple[list[Reading], list[Sample]]:
    """The readings of the devices that `samples` tell of, and the samples that are nothing the catalogue knows, as they are.

    `given` are the target's own labels with its name as `target`; `node` is this node. What is known and not finite is absent.
    """
    by_name, times = _by_name(tuple(maps)), _times(samples, maps)
    devices: dict[tuple[str, ...], _Device] = {}
    rest = []
    for sample in samples:
        known = by_name.get(sample.name)
        if known is None:
            rest.append(sample)
            continue
        labels = {**dict(sample.labels), **given}
        if not any([_put(devices, map_, name, sample.value, labels, node, times) for map_, name in known]):
            rest.append(sample)
    return [_reading(device) for device in devices.values()], rest


def _put(
    devices: dict[tuple[str, ...], _Device],
    map_: NameMap,
    name: Name,
    value: float,
    labels: Mapping[str, str],
    node: str,
    times: Mapping[str, float],
) -> bool:
    """Adds a value to its device; False where the sample names no device that this map knows."""
    if not all(_whole(pattern, labels.get(key, "")) for key, pattern in name.where.items()):
        return False
    if any(_whole(pattern, labels.get(key, "")) for key, pattern in map_.never.items()):
        return False
    identity = _identity(map_, labels, node)
    if identity is None:
        return False
    key = (map_.family.name, *identity.values())
    device = devices.get(key)
    if device is None:
        more = {k: told for k, templates in map_.attributes.items() if (told := _filled(templates, labels))}
        device = devices[key] = _Device(map_.family, identity, more, times.get(map_.since))
    if math.isfinite(value) and not any(low <= value <= high for low, high in map_.blanks):
        device.values[name.metric] = device.values.get(name.metric, 0.0) + value * name.scale / name.over
    return True


def _identity(map_: NameMap, labels: Mapping[str, str], node: str) -> dict[str, str] | None:
    identity = {}
    for key in map_.family.identity:
        if key == "node":
            told = _filled(map_.identity.get(key, ()), labels) or labels.get("node", "")
            identity[key] = told.lower() if told and not unfit_node(told) else node
        elif told := _filled(map_.identity.get(key, ()), labels):
            identity[key] = clean(told)
        else:
            return None
    return identity


def _filled(templates: Iterable[str], labels: Mapping[str, str]) -> str:
    """The first template whose labels are all there and say something, filled; "" where there is none."""
    for template in templates:
        keys = _keys(template)
        if all(labels.get(key) for key in keys):
            return template.format_map({key: labels[key] for key in keys})
    return ""


def _reading(device: _Device) -> Reading:
    values = {metric.name: _fit(metric.type, device.values.get(metric.name)) for metric in device.family.metrics}
    return Reading(device.family, device.identity, values, device.attributes, device.since)


def _fit(kind: ColumnType, value: float | None) -> float | int | None:
    """Pages write whole numbers as floats, and scaling leaves crumbs: what is a count is rounded."""
    return value if value is None or kind is ColumnType.F64 else round(value)


def _times(samples: Iterable[Sample], maps: Iterable[NameMap]) -> dict[str, float]:
    wanted = {map_.since for map_ in maps} - {""}
    return {s.name: s.value for s in samples if s.name in wanted and math.isfinite(s.value)}


@cache
def _by_name(maps: tuple[NameMap, ...]) -> Mapping[str, Sequence[tuple[NameMap, Name]]]:
    found: dict[str, list[tuple[NameMap, Name]]] = {}
    for map_ in maps:
        for name in map_.names:
            found.setdefault(name.foreign, []).append((map_, name))
    return found


@cache
def _keys(template: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\{(\w+)\}", template))


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _whole(pattern: str, text: str) -> bool:
    return _compiled(pattern).fullmatch(text) is not None
