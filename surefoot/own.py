"""Surefoot's own packages first: a folder on PYTHONPATH may hold a `pipeline/` or an `alerts/` of its own."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

NAMES = frozenset({"alerts", "dashboard", "exporters", "pipeline", "slo", "surefoot"})
ROOT = str(Path(__file__).parents[1])


class OwnPackages:
    """Finds Surefoot's top-level packages beside this one, whatever else is on the path."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of one of ours; None leaves the name to the other finders."""
        return PathFinder.find_spec(name, [ROOT]) if name in NAMES else None


def first() -> None:
    """Let our packages win from here on. Safe to repeat."""
    if OwnPackages not in sys.meta_path:
        sys.meta_path.insert(0, OwnPackages)
