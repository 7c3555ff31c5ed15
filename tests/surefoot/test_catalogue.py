"""The catalogue: every name stands in it once, and what refers to it refers to something that exists."""

import inspect

import pytest

from pipeline.catalog import actions, events, faults, metrics
from pipeline.catalog.devices import device_id
from pipeline.catalog.layers import Phase
from pipeline.hold_records import HOLD_RECORDS
from pipeline.records import RECORDS, Event, Step
from surefoot.hook import layout


@pytest.mark.parametrize(
    "names",
    [
        [m.name for f in metrics.FAMILIES for m in f.metrics],
        [f.name for f in metrics.FAMILIES],
        [e.name for e in events.EVENTS],
        [a.name for a in actions.ACTIONS],
        [f.name for f in faults.FAULTS],
    ],
    ids=["metrics", "families", "events", "actions", "faults"],
)
def test_no_name_stands_twice(names: list[str]) -> None:
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("module", [events, actions, faults, metrics], ids=lambda m: m.__name__)
def test_every_entry_of_the_catalogue_is_registered(module: object) -> None:
    kind = {events: events.EventKind, actions: actions.ActionKind, faults: faults.Fault, metrics: metrics.Family}[module]  # type: ignore[index]
    registered = {events: events.EVENTS, actions: actions.ACTIONS, faults: faults.FAULTS, metrics: metrics.FAMILIES}[module]  # type: ignore[index]
    assert [v for _, v in inspect.getmembers(module, lambda v: isinstance(v, kind)) if v not in registered] == []


@pytest.mark.parametrize("family", metrics.FAMILIES, ids=lambda f: f.name)
def test_a_metric_belongs_to_its_family_and_is_explained(family: metrics.Family) -> None:
    for metric in family.metrics:
        assert metric.name.startswith(family.name + ".")
        assert metric.help[0].isupper() or metric.help[0].isdigit(), metric.name
        assert not metric.help.endswith("."), metric.name
    columns = [family.column(m) for m in family.metrics]
    assert len(set(columns)) == len(columns)
    assert not {"ts", "device_id", "node"} & set(columns)


def test_the_hooks_phases_are_those_of_the_catalogue_in_the_same_order() -> None:
    assert layout.PHASES == tuple(Phase)


def test_every_phase_has_a_column_in_a_step() -> None:
    assert set(Phase) <= set(Step.__dataclass_fields__)


def test_a_device_id_is_the_same_everywhere_and_tells_neighbours_apart() -> None:
    disk = metrics.DISK
    ids = {device_id(disk, {"node": n, "disk": d}) for n in ("a", "ab") for d in ("sda", "b", "bsda")}
    assert len(ids) == 6
    # blake2b-64 of "disk\x1fa\x1fsda", by `printf 'disk\037a\037sda' | b2sum -l 64`
    assert f"{device_id(disk, {'node': 'a', 'disk': 'sda'}):016x}" == DISK_A_SDA


DISK_A_SDA = "4dea355e72857745"


def test_a_device_without_its_identity_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="disk"):
        device_id(metrics.DISK, {"node": "a"})


def test_a_record_survives_the_wire() -> None:
    from pipeline.clock import utcnow

    event = Event(id="1", at=utcnow(), kind="capture", layer="framework", severity="info", rank=0, attrs={"pid": "7"})
    assert Event.from_attributes(event.attributes()) == event


@pytest.mark.parametrize("cls", [*RECORDS, *HOLD_RECORDS], ids=lambda c: c.__name__)
def test_every_record_is_documented(cls: type) -> None:
    assert (cls.__doc__ or "").strip()
    assert not (cls.__doc__ or "").startswith(cls.__name__ + "(")
