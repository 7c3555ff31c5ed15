"""What every row of ours is: typed fields that travel as attributes of the same names."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_type_hints

from pipeline.clock import from_micros, to_micros
from pipeline.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row. `table` is where it is kept."""

    table: ClassVar[str]

    def attributes(self) -> dict[str, Any]:
        """This record as wire attributes: None is left out, times are microseconds since 1970."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {k: to_micros(v) if isinstance(v, datetime) else v for k, v in values if v is not None}

    @classmethod
    def from_attributes(cls, given: Mapping[str, Any]) -> Self:
        """The record that `given` describes.

        Raises InputError naming the attribute that is missing, unknown or of the wrong type.
        """
        types = _field_types(cls)  # type: ignore[arg-type]  # mypy takes type[Self] for unhashable
        if unknown := given.keys() - types.keys():
            raise InputError(f"{cls.table}: unknown attribute {min(unknown)!r}")
        values = {k: _convert(cls.table, k, v, types[k]) for k, v in given.items()}
        try:
            return cls(**values)
        except TypeError as e:
            raise InputError(f"{cls.table}: {e.args[0].split('__init__() ')[-1]}") from e


@cache
def _field_types(cls: type[Record]) -> dict[str, type]:
    hints = get_type_hints(cls)
    return {f.name: _bare(hints[f.name]) for f in fields(cls)}


def _bare(hint: Any) -> type:
    """`int` for `int | None`, `dict` for `dict[str, str]`."""
    if isinstance(hint, UnionType):
        hint = next(a for a in get_args(hint) if a is not type(None))
    return getattr(hint, "__origin__", hint)  # type: ignore[no-any-return]


def _convert(table: str, name: str, value: Any, wanted: type) -> Any:
    if wanted is datetime and type(value) is int:
        if not 10**14 < value < 10**16:  # 1973 to 2286 in microseconds: seconds, ms and ns fall outside
            raise InputError(f"{table}: {name}={value} is not a time in microseconds since 1970")
        return from_micros(value)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise InputError(f"{table}: {name} must be {wanted.__name__}, not {type(value).__name__}")
    if isinstance(value, dict) and any(type(v) is not str for v in value.values()):
        raise InputError(f"{table}: every value of {name} must be text")
    return value
