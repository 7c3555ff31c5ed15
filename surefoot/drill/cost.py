"""The same fault under Surefoot and under bare torchrun: what it cost, by the training's own record of its steps.

A training that fails under `torchrun --max-restarts` finds its newest checkpoint itself, as a careful user's does.
What was lost is the time until the run is where it would have been: from the moment at which its next step was due to
the moment at which that step was really done, on all ranks.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

GROUP_TIMEOUT = 60.0  # seconds that a collective may take, in both trainings: PyTorch's default would take half an hour
DEFAULT_GROUP_TIMEOUT = 1800.0  # seconds, of gloo; NCCL's is 600


@dataclass(frozen=True, slots=True)
class Line:
    """A step that rank 0 completed."""

    step: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fault cost: seconds from the fault to the first step completed after it, and until it was made up for; GPU-seconds."""

    system: str
    restarted: float | None
    caught_up: float | None
    lost: float | None
    computed: bool = False  # not run: by arithmetic
    why: str = ""  # why there is nothing to tell, where it was not run or did not come back
    missed: int = 0  # tries before this one from which it did not come back


def read_lines(path: Path) -> list[Line]:
    """The steps in a training's `losses.jsonl`, in order of time. A line that was cut by the fault is passed over."""
    lines = []
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            given = json.loads(text)
        except ValueError:
            continue
        lines.append(Line(given["step"], datetime.fromisoformat(given["at"])))
    return sorted(lines, key=lambda line: line.at)


def cost(system: str, lines: Sequence[Line], injected_at: datetime, ranks: int) -> Cost:
    """What a fault at `injected_at` cost a training of `ranks` ranks that completed the steps `lines`. None where it never came back.

    A step is due one median step time after the one before it. Steps that were under way when the fault struck and
    were still completed count as done before it.
    """
    gap = _gap(lines, injected_at)
    if gap is None:
        return Cost(system, None, None, None)
    before, after = lines[: gap + 1], lines[gap + 1 :]
    reached = max(line.step for line in before)
    last = before[-1].at
    back = next((line.at for line in after if line.step > reached), None)
    restarted = (after[0].at - injected_at).total_seconds()
    if back is None:
        return Cost(system, restarted, None, None)
    pace = median((b.at - a.at).total_seconds() for a, b in pairwise(before))
    lost = (back - last).total_seconds() - pace
    return Cost(system, restarted, (back - injected_at).total_seconds(), lost * ranks)


def _gap(lines: Sequence[Line], injected_at: datetime) -> int | None:
    """The index of the last step before the longest pause that ended after the fault; None where no step came after it."""
    pauses = [(b.at - a.at, n) for n, (a, b) in enumerate(pairwise(lines)) if b.at > injected_at]
    return max(pauses)[1] if pauses else None


def with_default_timeout(measured: Cost, ranks: int) -> list[Cost]:
    """What the hang would have cost with the default time-out: what follows it is later by the difference. Nothing where it never ended."""
    later = DEFAULT_GROUP_TIMEOUT - GROUP_TIMEOUT
    if measured.restarted is None or measured.caught_up is None or measured.lost is None:
        return []
    added = (measured.restarted + later, measured.caught_up + later, measured.lost + later * ranks)
    return [Cost("torchrun, default time-out", *added, computed=True)]


def table(costs: Sequence[Cost], fault: str) -> str:
    """The costs side by side, as Markdown."""
    rows = [
        f"| {fault}, under | first step again | made up for | GPU-seconds lost |",
        "|---|---:|---:|---:|",
        *(f"| {_name(c)} | {' | '.join(_cells(c))} |" for c in costs),
    ]
    return "\n".join(rows)


def _name(of: Cost) -> str:
    if of.computed:
        return f"{of.system} (by arithmetic)"
    tries = {0: "", 1: " (at the second try)"}.get(of.missed, f" (after {of.missed} tries in vain)")
    return of.system if of.why else f"{of.system}{tries}"


def _cells(of: Cost) -> list[str]:
    if of.why:
        return [f"{of.why}, in {of.missed + 1} tries" if of.missed else of.why, "", ""]
    return [_cell(of.restarted, of, " s"), _cell(of.caught_up, of, " s"), _cell(of.lost, of)]


def _cell(value: float | None, of: Cost, unit: str = "") -> str:
    if value is None:
        return "never"
    return f"{value:,.0f}{unit}" if of.computed else f"{value:.1f}{unit}"
