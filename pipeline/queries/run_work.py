"""How long a run's healthy steps take (`slo/pace.py` says how that is meant)."""

from dataclasses import dataclass
from datetime import datetime

from pipeline.queries import sql
from pipeline.store import Store


@dataclass(frozen=True, slots=True)
class Work:
    """Of `steps` steps: `mean_us` of the healthy ones and `limit_us`, up to which a step is healthy (microseconds of work)."""

    steps: int
    mean_us: int
    limit_us: int


def run_work(store: Store, run: str, until: datetime, deviations: int) -> Work:
    """Over the steps of `run` that ended by `until`, each from the end of the one before it, less its phases that are no work.

    A step is healthy up to the median plus `deviations` times the median absolute deviation.
    """
    (row,) = store.query(sql("run_work"), {"run": run, "until": until, "deviations": deviations})
    return Work(**row)
