"""How the steps of a run divide into phases, in few enough points to draw."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.catalog.layers import Phase
from pipeline.queries import sql
from pipeline.store import Store

OTHER = "other"  # time of a step that no phase covers


@dataclass(frozen=True, slots=True)
class PhasePoint:
    """Mean seconds that a step spent in `phase`, over all ranks and the steps of the bin from `step` on."""

    step: int
    phase: str
    seconds: float


def run_phases(store: Store, run: str, since: datetime, until: datetime, *, bins: int) -> list[PhasePoint]:
    """At most `bins` bins over the steps that ended in [since, until]; a phase that never occurred is left out."""
    rows = store.query(sql("run_phases"), {"run": run, "since": since, "until": until, "bins": bins})
    points = []
    for row in rows:
        inside = {str(phase): float(row[phase]) for phase in Phase}
        inside[OTHER] = max(0.0, row["seconds"] - sum(inside.values()))
        points += [PhasePoint(row["step"], phase, seconds) for phase, seconds in inside.items()]
    seen = {point.phase for point in points if point.seconds > 0}
    return [point for point in points if point.phase in seen]
