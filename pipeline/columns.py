"""Rows into Arrow columns of exactly the types that a ClickHouse table has. Refuses what the engine would bend in silence."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import InputError

Row = Mapping[str, Any]

_PLAIN = {
    "String": pa.string(),
    "Bool": pa.bool_(),
    "Date": pa.date32(),
    "DateTime": pa.timestamp("s", "UTC"),
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Int8": pa.int8(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "UInt8": pa.uint8(),
    "UInt16": pa.uint16(),
    "UInt32": pa.uint32(),
    "UInt64": pa.uint64(),
}
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_TICKS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LOWEST, _HIGHEST = 10**8, 10**10  # seconds since 1970 that are believed: 1973 to 2286
_ABSENT: Any = object()
_WRAPPED = re.compile(r"(Nullable|LowCardinality|Array|Map|DateTime64|DateTime)\((.*)\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its Arrow type, and whether it may be NULL."""

    name: str
    type: pa.DataType
    nullable: bool
    low_cardinality: bool


def column(name: str, clickhouse: str) -> Column:
    """The column `name` of ClickHouse type `clickhouse`, as DESCRIBE TABLE writes it.

    Raises InputError for a type that Surefoot's tables do not use.
    """
    low_cardinality = clickhouse.startswith("LowCardinality(")
    bare = clickhouse.removeprefix("LowCardinality(").removesuffix(")") if low_cardinality else clickhouse
    nullable = bare.startswith("Nullable(")
    return Column(name, arrow_type(bare), nullable, low_cardinality)


def arrow_type(clickhouse: str) -> pa.DataType:
    """The Arrow type whose values ClickHouse reads as `clickhouse` without loss."""
    if clickhouse in _PLAIN:
        return _PLAIN[clickhouse]
    found = _WRAPPED.fullmatch(clickhouse)
    if found is None:
        raise InputError(f"no Arrow type for ClickHouse type {clickhouse}")
    outer, inner = found[1], found[2]
    if outer == "DateTime64":
        return pa.timestamp(_UNITS[int(inner.split(",")[0])], "UTC")
    if outer == "DateTime":
        return _PLAIN["DateTime"]
    if outer == "Array":
        return pa.list_(arrow_type(inner))
    if outer == "Map":
        key, _, value = _top_comma(inner)
        return pa.map_(arrow_type(key), arrow_type(value.strip()))
    return arrow_type(inner)


def _top_comma(text: str) -> tuple[str, str, str]:
    """`text` at its first comma outside parentheses."""
    depth = 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            return text[:i], ",", text[i + 1 :]
    return text, "", ""


def table(name: str, columns: Sequence[Column], rows: Sequence[Row]) -> pa.Table:
    """`rows` as an Arrow table for the ClickHouse table `name`; columns that no row has are left to their defaults.

    A NaN or infinite float becomes NULL where the column may be NULL. Integers in a time column are ticks of its unit.
    Raises InputError naming table and column: unknown, None where NULL is not allowed, wrong type, out of
    range, a naive datetime, or a time outside 1973-2286 (most likely in the wrong unit).
    """
    used: set[str] = set().union(*(row.keys() for row in rows))
    if unknown := used - {c.name for c in columns}:
        raise InputError(f"{name} has no column {min(unknown)!r}")
    chosen = [c for c in columns if c.name in used]
    arrays = [_array(name, c, [row.get(c.name, _ABSENT) for row in rows]) for c in chosen]
    return pa.table(arrays, names=[c.name for c in chosen])


def _absent(column: Column) -> Any:
    """What a row without this column means: NULL, or what ClickHouse takes for the default of the type."""
    if column.nullable:
        return None
    if pa.types.is_string(column.type):
        return ""
    if pa.types.is_map(column.type) or pa.types.is_list(column.type):
        return ()
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        raise InputError("a time has no default: every row must give it")
    return False if pa.types.is_boolean(column.type) else 0


def _array(name: str, column: Column, values: list[Any]) -> pa.Array:
    try:
        if _ABSENT in values:
            default = _absent(column)
            values = [default if v is _ABSENT else v for v in values]
        if pa.types.is_timestamp(column.type):
            return _times(column, values)
        if pa.types.is_map(column.type):
            values = [list(v.items()) if isinstance(v, Mapping) else v for v in values]
        array = pa.array(values, column.type)
        if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(array), skip_nulls=True).as_py():
            array = _finite(column, values)
        if array.null_count and not column.nullable:
            raise InputError("None, and the column cannot be NULL")
    except (InputError, pa.ArrowException, TypeError, ValueError, OverflowError) as e:
        raise InputError(f"{name}.{column.name}: {e}") from e
    return array.dictionary_encode() if column.low_cardinality else array


def _finite(column: Column, values: list[Any]) -> pa.Array:
    if not column.nullable:
        raise InputError("not a finite number, and the column cannot be NULL")
    return pa.array([v if v is not None and math.isfinite(v) else None for v in values], column.type)


def _times(column: Column, values: list[Any]) -> pa.Array:
    if any(isinstance(v, datetime) and v.tzinfo is None for v in values):
        raise InputError("naive datetime: give it a time zone")
    array = pa.array(values, column.type)
    if array.null_count and not column.nullable:
        raise InputError("None, and the column cannot be NULL")
    span = pc.min_max(array.cast(pa.int64()))
    ticks = _TICKS[column.type.unit]
    low, high = span["min"].as_py(), span["max"].as_py()
    if low is not None and not (_LOWEST * ticks <= low and high < _HIGHEST * ticks):
        raise InputError(f"{low if low < _LOWEST * ticks else high} {column.type.unit} since 1970 is outside 1973-2286: wrong unit?")
    return array
