"""What a kind of event is. The kinds themselves stand in `events/`."""

from dataclasses import dataclass

from pipeline.catalog.layers import Layer, Severity


@dataclass(frozen=True, slots=True)
class EventKind:
    """A kind of event. `attrs` are the keys that its `attrs` map may hold besides the columns of the table."""

    name: str
    layer: Layer
    severity: Severity
    help: str
    attrs: tuple[str, ...] = ()
