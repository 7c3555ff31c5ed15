"""The families of which any node has, or had, a device: only their tables can hold readings."""

from collections.abc import Iterable

from pipeline.catalog.metrics import Family
from pipeline.queries import sql
from pipeline.store import Store


def families_there(store: Store, families: Iterable[Family]) -> list[Family]:
    """Those of `families` that the inventory has a device of, with those whose only device is a node itself, which it need not name."""
    named = {row["family"] for row in store.query(sql("families_there"), {})}
    return [family for family in families if family.name in named or family.identity == ("node",)]
