"""Foreign names that are shown beside ours on /metrics, for dashboards and rules that are there already. One line each."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from exporters.compat.dcgm import dcgm_text
from exporters.compat.node import node_text
from exporters.encode import Accepted
from pipeline.errors import SettingsError

ForeignText = Callable[[Sequence[Accepted]], str]
"""Readings of all collectors as Prometheus text under another exporter's names; "" where none of them is its. Pure."""

COMPAT: Final[Mapping[str, ForeignText]] = {
    "dcgm": dcgm_text,
    "node": node_text,
}


def chosen(names: Iterable[str], known: Mapping[str, ForeignText] = COMPAT) -> list[ForeignText]:
    """The texts of `names`, each once. Raises SettingsError for a name that is none."""
    found = []
    for name in dict.fromkeys(names):
        if name not in known:
            raise SettingsError(f"agent.compat: {name} is not among {', '.join(known) or 'those that are there: none is yet'}")
        found.append(known[name])
    return found
