"""A drill, and then the same training with the same fault under bare torchrun, one after the other on the same machine.

Where NVRx is installed its ft_launcher comes third.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from pipeline.clock import utcnow
from pipeline.errors import InputError
from surefoot.drill import heartbeats
from surefoot.drill import inject as subjects
from surefoot.drill import stack as stacks
from surefoot.drill.cost import GROUP_TIMEOUT, Cost, cost, read_lines, with_default_timeout
from surefoot.drill.kinds.kind import Ground, Scene
from surefoot.drill.kinds.registry import BY_NAME
from surefoot.drill.plan import Pause, Plan, Result, Say
from surefoot.drill.run import hurt, settings_for
from surefoot.drill.stage import stage

PEER = f"torchrun --max-restarts {subjects.BARE_RESTARTS}"
NVRX = f"NVRx ft_launcher --max-restarts {subjects.BARE_RESTARTS}"
TRIES = 3  # of a peer that does not come back
Start = Callable[[Plan, stacks.Stack, str], subjects.Subject]


def compare(plan: Plan, say: Say, pause: Pause) -> tuple[Result, list[Cost]]:
    """Carry out `plan` under Surefoot and under torchrun alone. A collective's time-out is the same, GROUP_TIMEOUT, for both."""
    plan = replace(plan, group_timeout=GROUP_TIMEOUT)
    with stage("surefoot-drill-", plan.keep) as (folder, pager):
        say(f"starting a stack in {folder}")
        with stacks.running(folder, settings_for(plan, pager), pause) as stack:
            result = hurt(plan, stack, pager, say, pause)
        ours = cost("Surefoot", read_lines(folder / result.run / subjects.LOSSES), result.truth.injected_at, plan.ranks)
        bare = _bare(plan, stack, say, pause)
        costs = [ours, bare, *(with_default_timeout(bare, plan.ranks) if plan.kind == "hang" else []), _nvrx(plan, stack, say, pause)]
    return result, costs


def _bare(plan: Plan, stack: stacks.Stack, say: Say, pause: Pause) -> Cost:
    """torchrun's cost. After a hang its ranks at times do not find each other again: then it is tried once more, and that is told."""
    found = _under(PEER, subjects.start_bare, plan, stack, say, pause)
    while found.why and found.missed < TRIES - 1:
        found = replace(_under(PEER, subjects.start_bare, plan, stack, say, pause, found.missed + 1), missed=found.missed + 1)
    return found


def _nvrx(plan: Plan, stack: stacks.Stack, say: Say, pause: Pause) -> Cost:
    if not heartbeats.installed():
        return Cost(NVRX, None, None, None, why="not installed")
    start = partial(subjects.start_bare, module=heartbeats.MODULE, further=("--ignore-missing-fault-tol-cfg",))
    return _under(NVRX, start, plan, stack, say, pause)


def _under(name: str, start: Start, plan: Plan, stack: stacks.Stack, say: Say, pause: Pause, number: int = 0) -> Cost:
    say(f"\nthe same under {name}, where nobody watches{f', once more ({number + 1} of at most {TRIES})' if number else ''}")
    run = f"bare{'' if name == PEER else '-nvrx'}-{plan.kind}{f'-{number}' if number else ''}"
    with subjects.running(start(plan, stack, run)) as subject:
        truth = BY_NAME[plan.kind].inject(Scene(plan, stack, subject, Ground(subject.out), pause))
        say("  +  0.00 s  injected")
        finished = subject.finished(plan, pause)
        waited = (utcnow() - truth.injected_at).total_seconds()
        found = cost(name, read_lines(subject.losses), truth.injected_at, plan.ranks)
        if found.lost is None:
            found = replace(found, why=f"not back after {waited:.0f} s")
        say(found.why or ("the training finished" if finished else "the training did not finish in good order"))
        return found


def write_into(path: Path, kind: str, table: str) -> None:
    """Put `table` between the marks for `kind` in a Markdown file. Raises InputError where they are not there."""
    text = path.read_text(encoding="utf-8")
    begin, end = f"<!-- surefoot drill {kind} --compare torchrun -->\n", "<!-- end of table -->"
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise InputError(f"{path} has no line {begin.strip()} with {end} after it")
    path.write_text(f"{before}{begin}\n{table}\n\n{end}{after}", encoding="utf-8")
