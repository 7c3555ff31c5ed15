"""What a metric and a family are. The metrics themselves stand in `metrics/`, a file for each group of families."""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """How a value behaves over time."""

    GAUGE = "gauge"
    COUNTER = "counter"


class ColumnType(StrEnum):
    """The physical ClickHouse type behind the view; every column is Nullable, since absent is NULL."""

    F64 = "Float64"
    U64 = "UInt64"
    U32 = "UInt32"
    U8 = "UInt8"


@dataclass(frozen=True, slots=True)
class Metric:
    """One quantity in base units. `low` and `high` bound what is believed (None: no bound)."""

    name: str
    unit: str  # UCUM: By, By/s, s, 1, Hz, W, Cel; "1" is a ratio or a count
    kind: Kind
    type: ColumnType
    low: float | None
    high: float | None
    help: str
    width: int = 64  # bits of a counter; after its largest value it begins at 0 again
    saturates: bool = False  # or stays there, until somebody resets it


@dataclass(frozen=True, slots=True)
class Family:
    """The metrics of one kind of device, and the attributes that identify such a device."""

    name: str
    identity: tuple[str, ...]
    help: str
    metrics: tuple[Metric, ...]

    def column(self, metric: Metric) -> str:
        """The column of `metric` in this family's table."""
        return metric.name.removeprefix(self.name + ".").replace(".", "_")


G, C = Kind.GAUGE, Kind.COUNTER
F64, U64, U32, U8 = ColumnType.F64, ColumnType.U64, ColumnType.U32, ColumnType.U8
