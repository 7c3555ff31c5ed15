"""Tables come from numbered files and from the catalogue; both are applied once, and never silently differently."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest

from pipeline import ddl
from pipeline.catalog.layers import Phase
from pipeline.catalog.metrics import FAMILIES, ColumnType, Family, Kind, Metric
from pipeline.errors import InputError, SettingsError
from pipeline.hold_records import HOLD_RECORDS
from pipeline.migrate import checksum, migrate
from pipeline.records import RECORDS, Record
from pipeline.settings import Settings, StoreSettings
from pipeline.store import Store
from surefoot.hook import layout

ONE = "CREATE TABLE IF NOT EXISTS {database}.one {on_cluster} (x String) ENGINE = {merge_tree} ORDER BY x SETTINGS {dedup};"
DEMO = Family("demo", ("node",), "A demo", (Metric("demo.power", "W", Kind.GAUGE, ColumnType.F64, 0, None, "Power"),))
SECOND = Metric("demo.fan.speed", "1", Kind.GAUGE, ColumnType.U32, 0, None, "Fan speed")


class Cluster:
    """Notes the DDL that a cluster would get: there is none here to run it."""

    def __init__(self) -> None:
        self.commands: list[str] = []

    def command(self, sql: str) -> None:
        self.commands.append(sql)

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        return []

    def insert_rows(self, table_name: str, rows: Sequence[Mapping[str, Any]], *, token: str) -> None:
        pass


# --- what is applied, and how often ----------------------------------------------------------


def test_migrating_again_changes_nothing(store: Store, store_settings: Settings) -> None:
    assert migrate(store, store_settings) == []
    names = {row["name"] for row in store.query("SELECT name FROM migrations")}
    assert names == {"0001_tables.sql", *(f"family:{f.name}" for f in FAMILIES)}


def test_files_are_applied_in_order_each_once_and_recorded_with_their_checksum(store: Store, store_settings: Settings) -> None:
    scripts = {"0003_b.sql": "INSERT INTO {database}.one SETTINGS insert_deduplication_token = 'b' VALUES ('b')", "0002_a.sql": ONE}
    assert migrate(store, store_settings, scripts=scripts) == ["0002_a.sql", "0003_b.sql"]
    assert migrate(store, store_settings, scripts=scripts) == []
    assert store.query("SELECT x FROM one") == [{"x": "b"}]
    assert store.query("SELECT checksum FROM migrations WHERE name = '0002_a.sql'") == [{"checksum": checksum(ONE)}]


def test_a_file_edited_after_it_was_applied_is_refused_by_name(store: Store, store_settings: Settings) -> None:
    migrate(store, store_settings, scripts={"0002_a.sql": ONE})
    with pytest.raises(SettingsError, match=r"0002_a\.sql was edited"):
        migrate(store, store_settings, scripts={"0002_a.sql": ONE + " "})


def test_a_hole_that_nobody_fills_is_refused_before_anything_runs(store: Store, store_settings: Settings) -> None:
    with pytest.raises(InputError, match="nonsense"):
        migrate(store, store_settings, scripts={"0002_a.sql": ONE + "SELECT {nonsense}"})
    assert store.query("EXISTS TABLE one") == [{"result": 0}]


def test_a_database_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(InputError, match="cannot name"):
        ddl.Target.of(StoreSettings.model_construct(database="a; DROP"))  # settings would refuse it before


# --- family tables ---------------------------------------------------------------------------


def test_a_new_metric_adds_its_column_and_keeps_the_rows(store: Store, store_settings: Settings) -> None:
    assert migrate(store, store_settings, scripts={}, families=[DEMO]) == ["family:demo"]
    row = {"device_id": 1, "ts": datetime.fromisoformat("2099-01-01T00:00:00+00:00"), "node": "n", "power": 3.5}
    store.insert_rows("demo_raw", [row], token="1")
    wider = replace(DEMO, metrics=(*DEMO.metrics, SECOND))
    assert migrate(store, store_settings, scripts={}, families=[wider]) == ["family:demo:fan_speed"]
    assert migrate(store, store_settings, scripts={}, families=[wider]) == []
    assert store.query("SELECT * FROM demo") == [{**row, "fan_speed": None}]
    store.insert_rows("demo_raw", [{**row, "device_id": 2, "fan_speed": 7}], token="2")  # the cached schema knows it


def test_a_metric_that_left_the_catalogue_keeps_its_column_but_not_its_place_in_the_view(store: Store, store_settings: Settings) -> None:
    migrate(store, store_settings, scripts={}, families=[replace(DEMO, metrics=(*DEMO.metrics, SECOND))])
    assert migrate(store, store_settings, scripts={}, families=[DEMO]) == []
    assert "fan_speed" in {row["name"] for row in store.query("DESCRIBE TABLE demo_raw")}


def test_a_metric_whose_type_changed_is_refused(store: Store, store_settings: Settings) -> None:
    migrate(store, store_settings, scripts={}, families=[DEMO])
    changed = replace(DEMO, metrics=(replace(DEMO.metrics[0], type=ColumnType.U64),))
    with pytest.raises(SettingsError, match=r"demo\.power is Nullable\(Float64\).*Nullable\(UInt64\)"):
        migrate(store, store_settings, scripts={}, families=[changed])


@pytest.mark.parametrize("family", FAMILIES, ids=[f.name for f in FAMILIES])
def test_the_view_of_a_family_shows_its_metrics(module_store: Store, family: Family) -> None:
    shown = {row["name"]: row["type"] for row in module_store.query(f"DESCRIBE TABLE {family.name}")}
    assert list(shown) == ["device_id", "ts", "node", *(family.column(m) for m in family.metrics)]
    assert all(shown[family.column(m)] == f"Nullable({m.type})" for m in family.metrics)


# --- vocabulary in two places is equal -------------------------------------------------------

FITS = {
    "str": {"String", "LowCardinality(String)"},
    "int": {"UInt8", "UInt16", "UInt32", "UInt64", "Int32", "Int64"},
    "float": {"Float64"},
    "datetime": {"DateTime64(6, 'UTC')"},
    "dict": {"Map(LowCardinality(String), String)"},
}


@pytest.mark.parametrize("record", [*RECORDS, *HOLD_RECORDS], ids=lambda r: r.table)
def test_a_record_is_its_table(module_store: Store, record: type[Record]) -> None:
    columns = {row["name"]: row["type"] for row in module_store.query(f"DESCRIBE TABLE {record.table}")}
    hints = get_type_hints(record)
    assert set(columns) == {f.name for f in fields(record)}
    for name, kind in columns.items():
        optional = isinstance(hints[name], UnionType)
        bare = next(a for a in get_args(hints[name]) if a is not type(None)) if optional else hints[name]
        assert kind.startswith("Nullable(") == optional, name
        assert (kind.removeprefix("Nullable(").removesuffix(")") if optional else kind) in FITS[
            getattr(bare, "__origin__", bare).__name__
        ], name


def test_every_table_of_records_remembers_tokens_and_syncs_inserts(module_store: Store, module_settings: Settings) -> None:
    found = module_store.query(
        "SELECT name, engine_full FROM system.tables WHERE database = {d:String} AND engine LIKE '%MergeTree'",
        {"d": module_settings.store.database},
    )
    assert {r.table for r in (*RECORDS, *HOLD_RECORDS)} <= {row["name"] for row in found}
    for row in found:
        assert "deduplication_window = 1000" in row["engine_full"], row["name"]
        assert "fsync_after_insert = 1" in row["engine_full"], row["name"]


def test_the_hook_s_phases_are_the_catalogue_s() -> None:
    assert tuple(layout.PHASES) == tuple(p.value for p in Phase)


# --- the template ----------------------------------------------------------------------------


def test_a_file_is_split_at_semicolons_that_end_statements_only() -> None:
    text = "-- one; two\nSELECT ';', `a;b`, 'it''s; \\'; so' /* ; */ ;\n\n;SELECT 2"
    assert list(ddl.split(text)) == ["SELECT ';', `a;b`, 'it''s; \\'; so'", "SELECT 2"]


def test_on_a_cluster_every_table_is_replicated_and_distributed() -> None:
    seen = Cluster()
    migrate(seen, Settings(store={"cluster": "main", "url": "http://server:8123"}))  # type: ignore[arg-type]
    assert all("ON CLUSTER main" in c for c in seen.commands)
    created = [c for c in seen.commands if c.startswith("CREATE TABLE")]
    local = [c for c in created if "Replicated" in c]
    spread = [c for c in created if "ENGINE = Distributed(main, surefoot, " in c]
    assert len(local) + len(spread) == len(created)
    assert any("surefoot.steps_local ON CLUSTER main (" in c and "replicated_deduplication_window" in c for c in local)
    assert any(
        "surefoot.steps ON CLUSTER main AS surefoot.steps_local" in c and c.endswith("steps_local, cityHash64(node))") for c in spread
    )
    assert any("surefoot.requests ON CLUSTER main AS" in c and c.endswith("cityHash64(intent))") for c in spread)
    assert not any("fsync" in c or "{on_cluster}" in c or "{database}." in c for c in seen.commands)


def test_on_a_cluster_a_new_column_is_added_to_both_halves() -> None:
    wider = replace(DEMO, metrics=(*DEMO.metrics, SECOND))
    added = ddl.add_column(wider, "fan_speed", ddl.Target("db", "main"))
    assert added == [
        "ALTER TABLE db.demo_raw_local ON CLUSTER main ADD COLUMN IF NOT EXISTS fan_speed Nullable(UInt32)",
        "ALTER TABLE db.demo_raw ON CLUSTER main ADD COLUMN IF NOT EXISTS fan_speed Nullable(UInt32)",
    ]
