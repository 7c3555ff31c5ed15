"""The page of a report: facts in, Markdown out. Pure; percent and GPU-hours exist only here."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import floor
from urllib.parse import urlencode

from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.layers import Category
from pipeline.spans import long_span
from pipeline.wording import listed
from slo.figures import Spread
from slo.report.facts import UNEXPLAINED, Cause, Facts, IncidentFacts, Quiet

NO_DATA = "no data"
INCIDENTS, RUNS, NAMES = 10, 8, 4  # rows of a table, and names of a list; what is beyond is counted
_HOURS_FROM = 10 * 3600  # GPU-seconds of a period from which its tables speak of GPU-hours
_LATE = 0.05  # of the period's GPU time outside the ledger from which that is the first thing to know
_TRIFLE = 0.001  # of the period's GPU time: what is less is not worth a line

_CAUSES = {
    Category.INIT: "Starting up",
    Category.LOAD_CHECKPOINT: "Loading checkpoints",
    Category.COMPILE: "Compiling",
    Category.CHECKPOINT: "Writing checkpoints",
    Category.EVAL: "Evaluation",
    Category.DATA_WAIT: "Waiting for data",
    Category.ROLLOUT_IDLE: "Waiting for rollouts",
    Category.SLOW: "Steps slower than the run's own pace",
    Category.CAPACITY: "Waiting for capacity",
    Category.IDLE: "Allocated but unused",
    Category.MAINTENANCE: "Planned maintenance",
    Category.UNKNOWN: "Unknown: nobody saw what the GPUs did",
    UNEXPLAINED: "Failures that no incident explains",
}


@dataclass(frozen=True, slots=True)
class Unit:
    """What GPU time is told in: one unit a report, so that its tables add up."""

    name: str
    seconds: float
    decimals_below: float

    def of(self, gpu_seconds: float) -> str:
        """The number alone; never 0 for something."""
        n = gpu_seconds / self.seconds
        return "< 0.1" if 0 < n < 0.05 else f"{n:,.1f}" if n < self.decimals_below else f"{n:,.0f}"

    def told(self, gpu_seconds: float) -> str:
        """The number with its unit."""
        return f"{self.of(gpu_seconds)} {self.name}"


_HOURS, _SECONDS = Unit("GPU-h", 3600.0, 1000), Unit("GPU-s", 1.0, 10)


def page(facts: Facts, console: str) -> str:
    """The report in Markdown; `console` is the base of its links."""
    unit = _HOURS if facts.gpu_seconds >= _HOURS_FROM else _SECONDS
    head = [f"# Training stability, {_period(facts.start, facts.end)}", ""]
    if facts.empty:
        head += ["**No run and no incident is on record for this period.** There is nothing to measure, so there are no figures."]
    else:
        head += _summary(facts, unit)
        head += _time(facts, unit) + _incidents(facts, unit, console) + _repair(facts) + _runs(facts, unit)
    foot = ["", f"<sub>Made {_minute(facts.made_at)} by `surefoot report`. All times are UTC. {_GOODPUT}</sub>"]
    return "\n".join([*head, *_unknown(facts, unit), *foot]) + "\n"


_GOODPUT = "Goodput is GPU time in steps that were not lost later, over all GPU time of the runs."


# --- the minute's worth ----------------------------------------------------------------------


def _summary(facts: Facts, unit: Unit) -> list[str]:
    lines = [_late(facts), _goodput(facts, unit), _worst(facts, unit), _open(facts), _blind(facts)]
    return ["\n".join(f"- {line}" for line in lines if line)]


def _late(facts: Facts) -> str:
    """Where a good part of the period is not in the ledger, its figures mean little: said before them."""
    whole = facts.gpu_seconds + facts.unknown.not_in_ledger
    share = facts.unknown.not_in_ledger / whole if whole else 0.0
    return f"**{_percent(share)} of the GPU time is not in the ledger (yet)**: figures are of the rest." if share >= _LATE else ""


def _goodput(facts: Facts, unit: Unit) -> str:
    if facts.goodput is None:
        return "**Goodput: no data.** The ledger has no GPU time of this period."
    return f"**Goodput {_percent(facts.goodput)}** of {unit.told(facts.gpu_seconds)}."


def _worst(facts: Facts, unit: Unit) -> str:
    lost = [c for c in facts.causes if c.kind == "incident"]
    if not lost:
        return "**No GPU time was lost to incidents.**" if facts.gpu_seconds else ""
    whole = sum(c.gpu_seconds for c in lost)
    most = f", {'most' if len(lost) > 1 else 'all'} of it to {_short(lost[0])} ({unit.told(lost[0].gpu_seconds)})"
    return f"**{unit.told(whole)} were lost to incidents** ({_percent(whole / facts.gpu_seconds)}){most}."


def _open(facts: Facts) -> str:
    count, still = len(facts.incidents), sum(i.resolved is None for i in facts.incidents)
    if not count:
        return "**No incident.**"
    resolved = facts.repair.resolve
    took = f" Resolved in {_duration(resolved.mean)} on average, half of them within {_duration(resolved.median)}." if resolved else ""
    return f"**{_plural(count, 'incident')}**{f', {still} still open' if still else ', none still open'}.{took}"


def _blind(facts: Facts) -> str:
    share = facts.unknown.share
    if share is None or share < _TRIFLE:
        return ""
    return f"**{_percent(share)} of the GPU time is unknown**: the true goodput lies up to that much higher."


# --- tables ----------------------------------------------------------------------------------


def _time(facts: Facts, unit: Unit) -> list[str]:
    if not facts.gpu_seconds:
        return []
    rows = [("**Productive**", "", unit.of(facts.productive), _percent(facts.productive / facts.gpu_seconds))]
    rows += [(_cause(c), _count(c), unit.of(c.gpu_seconds), _percent(c.gpu_seconds / facts.gpu_seconds)) for c in facts.causes]
    rows.append(("**Together**", "", f"**{unit.of(facts.gpu_seconds)}**", ""))
    return ["", "## Where the GPU time went", "", *_table(("", "incidents", unit.name, "share"), rows, right=(1, 2, 3))]


def _short(c: Cause) -> str:
    return f"`{c.name}`" if c.name in FAULTS else _CAUSES.get(c.name, c.name).lower()


def _cause(c: Cause) -> str:
    known = FAULTS[c.name].summary if c.name in FAULTS else _CAUSES.get(c.name, c.name)
    return f"{_text(known)} (`{c.name}`)" if c.name in FAULTS else _text(known)


def _count(c: Cause) -> str:
    return str(c.incidents) if c.incidents else ""


def _incidents(facts: Facts, unit: Unit, console: str) -> list[str]:
    if not facts.incidents:
        return []
    shown = facts.incidents[:INCIDENTS]
    rows = [_incident(i, unit, console) for i in shown]
    beyond = len(facts.incidents) - len(shown)
    more = ["", f"And {_plural(beyond, 'more incident')} that cost less: {console}/incident"] if beyond else []
    heads = ("incident", "where", "began", "took", f"{unit.name} lost")
    return ["", "## Incidents, the costliest first", "", *_table(heads, rows, right=(3, 4)), *more]


def _incident(i: IncidentFacts, unit: Unit, console: str) -> tuple[str, ...]:
    link = f"[{_text(i.title)}]({console}/incident?{urlencode({'incident': i.incident})})"
    where = ", ".join(_text(t) for t in (i.node, f"run {i.run}" if i.run else "") if t) or "-"
    took = _duration(i.seconds) if i.resolved else f"**open**, {_duration(i.seconds)} so far"
    return link, where, _minute(i.onset), took, "-" if i.gpu_seconds is None else unit.of(i.gpu_seconds)


def _repair(facts: Facts) -> list[str]:
    r = facts.repair
    still = f" {_plural(len(r.open), 'incident')} not resolved by the end of the period: in no average." if r.open else ""
    down = f"At least one run stood still for {_duration(facts.downtime)} of the period." if facts.downtime else ""
    if r.resolve is None:
        nothing = f"Time to repair: {NO_DATA}, no incident was resolved in this period.{still}"
        return ["", "## Time to repair (MTTR)", "", nothing, *(["", down] if down else [])] if facts.incidents else []
    rows = [_spread("from onset to the first step after it", r.recover), _spread("to the step before the failure", r.catch_up)]
    rows.append(_spread("to resolved", r.resolve))
    heads = ("", "incidents", "mean", "median", "p90")
    return ["", "## Time to repair (MTTR)", "", *_table(heads, rows, right=(1, 2, 3, 4)), "", f"{down}{still}".strip()]


def _spread(what: str, s: Spread | None) -> tuple[str, ...]:
    if s is None:
        return what, "0", NO_DATA, NO_DATA, NO_DATA
    return what, str(s.count), _duration(s.mean), _duration(s.median), _duration(s.p90)


def _runs(facts: Facts, unit: Unit) -> list[str]:
    if len(facts.runs) < 2:
        return []
    rows = [(f"`{r.run}`", unit.of(r.gpu_seconds), _percent(r.goodput)) for r in facts.runs[:RUNS]]
    beyond = len(facts.runs) - len(rows)
    more = ["", f"And {_plural(beyond, 'smaller run')}."] if beyond else []
    return ["", "## Runs, the largest first", "", *_table(("run", unit.name, "goodput"), rows, right=(1, 2)), *more]


def _unknown(facts: Facts, unit: Unit) -> list[str]:
    u = facts.unknown
    lines = []
    if u.gpu_seconds:
        lines.append(f"{unit.told(u.gpu_seconds)} of GPU time ({_percent(u.share)}) without a sign from the ranks.")
    if u.not_in_ledger > _TRIFLE * (facts.gpu_seconds + u.not_in_ledger):
        lines.append(f"{unit.told(u.not_in_ledger)} of runs that were up are not in the ledger (yet: it follows by about a minute).")
    if u.runs_without_ranks:
        lines.append(f"No rank was ever seen of: {_names([f'`{r}`' for r in u.runs_without_ranks])}. Their GPU time is not counted.")
    lines += [f"The agent of {_quiet(q)}." for q in u.agents[:NAMES]]
    if len(u.agents) > NAMES:
        lines.append(f"The agents of {len(u.agents) - NAMES} more nodes were silent for a while.")
    lines += [f"Surefoot's own part {_quiet(q)}; what happened then may be seen late or never." for q in u.parts]
    if not u.agents_heard:
        lines.append("No agent was heard: of the machines themselves nothing is known.")
    if not u.parts_heard and u.parts_known_from < facts.end:
        lines.append("Neither `jobs` nor `ingest` was heard: nobody watched.")
    if u.parts_known_from > facts.start:
        lines.append(f"Whether Surefoot itself was up is known from {_minute(min(u.parts_known_from, facts.end))} on.")
    return ["", "## What is not known", "", *(f"- {line}" for line in lines or ["Nothing: every GPU-second and every part was seen."])]


def _quiet(q: Quiet) -> str:
    if q.since:
        return f"`{q.name}` is silent since {_minute(q.since)} ({_duration(q.seconds)} of the period)"
    return f"`{q.name}` was silent for {_duration(q.seconds)}"


# --- words -----------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> list[str]:
    lines = [heads, ["--:" if n in right else "---" for n in range(len(heads))], *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _names(given: Sequence[str]) -> str:
    return listed(given, NAMES)


def _text(text: str) -> str:
    """Text in which nothing is markup, on one line."""
    return re.sub(r"([\\`*_{}\[\]<>|#~&])", r"\\\1", " ".join(text.split()))


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _percent(ratio: float | None) -> str:
    """Never rounded up to 100 %, and never 0 % for something."""
    if ratio is None:
        return NO_DATA
    return "< 0.1 %" if 0 < ratio < 0.001 else f"{floor(ratio * 1000 + 1e-9) / 10:.1f} %"


def _duration(seconds: float) -> str:
    """`3.2 s`, `41 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    return f"{seconds:.1f} s" if seconds < 9.95 else long_span(seconds)


def _minute(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _period(start: datetime, end: datetime) -> str:
    """Whole days without a time of day."""
    first, last = start.astimezone(UTC), end.astimezone(UTC)
    if (first.hour, first.minute, first.second, last.hour, last.minute, last.second) == (0,) * 6:
        return f"{first:%Y-%m-%d} to {last:%Y-%m-%d} (UTC, the last day not included)"
    return f"{first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
