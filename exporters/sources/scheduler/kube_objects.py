"""What stands where in an object of Kubernetes' API. Pure; what is malformed is absent."""

from collections.abc import Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]


def meta(told: Object) -> Object:
    """What of an object's metadata is kept."""
    return {key: text(at(told, "metadata", key)) for key in ("uid", "namespace", "name")}


def at(told: Any, *path: str) -> Any:
    """What stands at `path`, None where nothing does."""
    for key in path:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def dicts(told: Any) -> Iterator[Object]:
    """The objects in a list; none where it is no list."""
    return (one for one in told if isinstance(one, dict)) if isinstance(told, list) else iter(())


def text(told: Any) -> str:
    """A text, "" where it is none."""
    return told if isinstance(told, str) else ""
