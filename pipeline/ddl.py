"""All DDL through one template: what differs between one machine and a cluster is filled in here.

On a cluster a table has two halves: `<name>_local`, replicated, holds a shard's rows; `<name>`, Distributed,
is what everybody reads and writes. On one machine there is only `<name>`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.catalog.metrics import Family
from pipeline.errors import InputError
from pipeline.settings import StoreSettings

WINDOW = 1000  # inserts whose tokens a table remembers

_HOLE = re.compile(r"\{(\w+)\}")
_CREATE = re.compile(r"CREATE TABLE IF NOT EXISTS (\{database\}\.)(\w+) \{on_cluster\}")
_COLUMN = re.compile(r"^\s+(\w+) [A-Z]", re.MULTILINE)
_LITERAL_OR_COMMENT = re.compile(r"'(?:[^'\\]|\\.|'')*'|`[^`]*`|--[^\n]*|/\*.*?\*/|;", re.DOTALL)

_FAMILY_TABLE = """CREATE TABLE IF NOT EXISTS {database}.%s_raw {on_cluster} (
    device_id UInt64,
    ts DateTime64(6, 'UTC') CODEC(DoubleDelta, ZSTD),
    node LowCardinality(String),
%s
) ENGINE = {merge_tree} PARTITION BY toDate(ts) ORDER BY (device_id, ts)
TTL toDateTime(ts) + INTERVAL 14 DAY SETTINGS ttl_only_drop_parts = 1, {dedup};"""
_FAMILY_VIEW = "CREATE OR REPLACE VIEW {database}.%s {on_cluster} AS SELECT device_id, ts, node, %s FROM {database}.%s_raw;"
_ADD_COLUMN = "ALTER TABLE {database}.%s {on_cluster} ADD COLUMN IF NOT EXISTS %s;"
_DISTRIBUTED = (
    "CREATE TABLE IF NOT EXISTS {database}.%s {on_cluster} AS {database}.%s_local "
    "ENGINE = Distributed({cluster}, {database}, %s_local, cityHash64(%s))"
)


@dataclass(frozen=True, slots=True)
class Target:
    """Where DDL goes: `cluster` is "" on one machine."""

    database: str
    cluster: str = ""

    @classmethod
    def of(cls, settings: StoreSettings) -> "Target":
        """The target that the settings name.

        Raises InputError for a name that is not an identifier.
        """
        for name in filter(None, (settings.database, settings.cluster)):
            if not re.fullmatch(r"\w+", name):
                raise InputError(f"{name!r} cannot name a database or cluster: letters, digits and _ only")
        return cls(settings.database, settings.cluster)

    def values(self) -> dict[str, str]:
        """What fills the template's holes. On one machine an insert is on disk before it is acknowledged."""
        if not self.cluster:
            dedup = f"non_replicated_deduplication_window = {WINDOW}, fsync_after_insert = 1, fsync_part_directory = 1"
            engines = {"merge_tree": "MergeTree", "replacing_merge_tree": "ReplacingMergeTree(seen_at)"}
            return {"database": self.database, "on_cluster": "", "cluster": "", "dedup": dedup, **engines}
        where = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'"
        return {
            "database": self.database,
            "on_cluster": f"ON CLUSTER {self.cluster}",
            "cluster": self.cluster,
            "merge_tree": f"ReplicatedMergeTree({where})",
            "replacing_merge_tree": f"ReplicatedReplacingMergeTree({where}, seen_at)",
            "dedup": f"replicated_deduplication_window = {WINDOW}",
        }


def create_database(target: Target) -> str:
    """The statement that makes the database."""
    return _fill("CREATE DATABASE IF NOT EXISTS {database} {on_cluster}", target)


def statements(text: str, target: Target) -> list[str]:
    """The statements of a migration file, holes filled, and for a cluster each table in its two halves.

    Raises InputError for a hole that nobody fills.
    """
    wanted = (half for statement in split(text) for half in _halves(statement, target))
    return [_fill(statement, target) for statement in wanted]


def split(text: str) -> Iterator[str]:
    """`text` at its semicolons, but for those in literals, quoted names and comments. Comments are dropped."""
    statement, at = "", 0
    for found in _LITERAL_OR_COMMENT.finditer(text):
        statement += text[at : found.start()]
        at = found.end()
        if found[0] == ";":
            if statement.strip():
                yield statement.strip()
            statement = ""
        elif not found[0].startswith(("--", "/*")):
            statement += found[0]
    statement += text[at:]
    if statement.strip():
        yield statement.strip()


def _fill(statement: str, target: Target) -> str:
    values = target.values()
    if unknown := set(_HOLE.findall(statement)) - values.keys():
        raise InputError(f"migration has a hole {{{min(unknown)}}} that nobody fills; known are {', '.join(values)}")
    return _HOLE.sub(lambda hole: values[hole[1]], statement)


def _halves(statement: str, target: Target) -> Iterator[str]:
    created = _CREATE.match(statement)
    if not target.cluster or created is None:
        yield statement
        return
    name = created[2]
    yield statement.replace(created[0], created[0].replace(f"{created[1]}{name}", f"{created[1]}{name}_local"), 1)
    columns = _COLUMN.findall(statement)
    yield _DISTRIBUTED % (name, name, name, "node" if "node" in columns else columns[0])


# --- families --------------------------------------------------------------------------------


def family_columns(family: Family) -> dict[str, str]:
    """Name and type of each metric's column, in the catalogue's order."""
    return {family.column(m): f"Nullable({m.type.value})" for m in family.metrics}


def create_family(family: Family, target: Target) -> list[str]:
    """The statements that make the table of `family`."""
    columns = ",\n".join(f"    {name} {kind}" for name, kind in family_columns(family).items())
    return statements(_FAMILY_TABLE % (family.name, columns), target)


def add_column(family: Family, name: str, target: Target) -> list[str]:
    """The statements that add the column `name` to the table of `family`, everywhere it must be."""
    halves = (f"{family.name}_raw_local", f"{family.name}_raw") if target.cluster else (f"{family.name}_raw",)
    kind = family_columns(family)[name]
    return [s for half in halves for s in statements(_ADD_COLUMN % (half, f"{name} {kind}"), target)]


def family_view(family: Family, target: Target) -> list[str]:
    """The statements that make the view of `family`: what everybody reads, in base units."""
    return statements(_FAMILY_VIEW % (family.name, ", ".join(family_columns(family)), family.name), target)
