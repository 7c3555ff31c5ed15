"""Brings the store's tables up to date: numbered SQL files, each once, then the tables that the catalogue describes.

What was applied is recorded with its checksum in `migrations`. Running it again changes nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any, Protocol

from pipeline import ddl
from pipeline.catalog.metrics import FAMILIES, Family
from pipeline.clock import utcnow
from pipeline.errors import SettingsError
from pipeline.settings import Settings

_LEDGER = """CREATE TABLE IF NOT EXISTS {database}.migrations {on_cluster} (
    name String,
    checksum String,
    applied_at DateTime64(6, 'UTC')
) ENGINE = {merge_tree} ORDER BY name SETTINGS {dedup};"""
_APPLIED = "SELECT name, argMax(checksum, applied_at) AS checksum FROM {database:Identifier}.migrations GROUP BY name"
_COLUMNS = "SELECT name, type FROM system.columns WHERE database = {database:String} AND table = {table:String}"


class StoreLike(Protocol):
    """What migrating needs of a Store."""

    def command(self, sql: str) -> None: ...

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> list[dict[str, Any]]: ...

    def insert_rows(self, table_name: str, rows: Sequence[Mapping[str, Any]], *, token: str) -> None: ...


def migrate(
    store: StoreLike, settings: Settings, *, scripts: Mapping[str, str] | None = None, families: Sequence[Family] = FAMILIES
) -> list[str]:
    """Make or complete the database of `settings`; gives the names of what was applied, in order.

    `store` may be connected to any database that exists; `scripts` (file name → SQL) default to those of this package.
    Raises SettingsError for a file that was edited after it was applied, or a column whose type has changed.
    """
    target = ddl.Target.of(settings.store)
    store.command(ddl.create_database(target))
    for statement in ddl.statements(_LEDGER, target):
        store.command(statement)
    applied = {row["name"]: row["checksum"] for row in store.query(_APPLIED, {"database": target.database})}
    texts = _packaged() if scripts is None else scripts
    done: list[str] = []
    for name, text in sorted(texts.items()):
        if _is_new(name, text, applied):
            _apply(store, target, name, text, ddl.statements(text, target))
            done.append(name)
    for family in families:
        done += _reconcile(store, target, family)
    return done


def checksum(text: str) -> str:
    """What `migrations` keeps of a text, to see that it was edited."""
    return sha256(text.encode()).hexdigest()


def _packaged() -> dict[str, str]:
    folder = files("pipeline") / "migrations"
    return {f.name: f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".sql")}


def _is_new(name: str, text: str, applied: Mapping[str, str]) -> bool:
    if name not in applied:
        return True
    if applied[name] != checksum(text):
        raise SettingsError(f"migration {name} was edited after it was applied: restore it, and put the change into a new file")
    return False


def _apply(store: StoreLike, target: ddl.Target, name: str, text: str, steps: Sequence[str]) -> None:
    """Carry out `steps` (each may be carried out twice), then record them as `name`."""
    for statement in steps:
        store.command(statement)
    row = {"name": name, "checksum": checksum(text), "applied_at": utcnow()}
    store.insert_rows(f"{target.database}.migrations", [row], token=f"migration:{name}:{row['checksum']}")


def _reconcile(store: StoreLike, target: ddl.Target, family: Family) -> Iterator[str]:
    """Make the table of `family`, or add what it lacks. Columns are never changed or dropped."""
    wanted = ddl.family_columns(family)
    rows = store.query(_COLUMNS, {"database": target.database, "table": f"{family.name}_raw"})
    there = {row["name"]: row["type"] for row in rows}
    if changed := [n for n in wanted.keys() & there.keys() if wanted[n] != there[n]]:
        name = min(changed)
        raise SettingsError(
            f"{family.name}.{name} is {there[name]} in the store and {wanted[name]} in the catalogue: types never change, take a new name"
        )
    missing = [n for n in wanted if n not in there] if there else []
    view = ddl.family_view(family, target)
    if not there:
        create = ddl.create_family(family, target)
        _apply(store, target, f"family:{family.name}", "\n".join(create), [*create, *view])
        yield f"family:{family.name}"
    for name in missing:
        add = ddl.add_column(family, name, target)
        _apply(store, target, f"family:{family.name}:{name}", "\n".join(add), [*add, *view])
        yield f"family:{family.name}:{name}"
