"""A drill from beginning to end: a stack, a real training, a real fault, and the judgement of what was done about it."""

import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from pipeline.clock import utcnow
from pipeline.errors import SettingsError
from pipeline.loss import loss_sentence
from pipeline.queries.incident_actions import incident_actions
from pipeline.queries.run_attempts import run_attempts
from pipeline.store import Store
from slo.figures import goodput, incident_costs, spent
from slo.ledger_now import compute_run
from surefoot.drill import inject as subjects
from surefoot.drill import stack as stacks
from surefoot.drill.pager import ROUTING_KEY, Pager
from surefoot.drill.plan import Located, Plan, Result
from surefoot.drill.watch import Say, Watch


def drill(plan: Plan, say: Say) -> Result:
    """Carry out `plan` on a stack of its own, telling its progress by `say`.

    Raises SurefootError where the drill itself could not be run (a port, the training, the folder).
    """
    with _folder(plan) as folder, _pager() as pager:
        say(f"starting a stack in {folder}")
        stack = stacks.start(folder, settings_for(plan, pager))
        try:
            say(f"console {stack.settings.console.link}")
            return hurt(plan, stack, pager, say)
        finally:
            stack.stop()


def settings_for(plan: Plan, pager: Pager) -> dict[str, Any]:
    """The settings that a drill adds to a stack: its pager, and how far the restart may go by itself."""
    return {
        "receivers": [{"kind": "log"}, {"kind": "pagerduty", "url": pager.url, "key": ROUTING_KEY}],
        "recovery": {"modes": {"restart_run": str(plan.mode)}},
    }


def hurt(plan: Plan, stack: stacks.Stack, pager: Pager, say: Say) -> Result:
    """Train on `stack`, inject the fault, watch, and judge."""
    run = f"drill-{plan.kind}-{uuid.uuid4().hex[:6]}"
    say(f"training {plan.ranks} ranks as run {run}")
    subject = subjects.start(plan, stack, run)
    store = Store.connect(stack.settings)
    try:
        truth = subjects.inject(plan, stack, subject)
        say(f"  +  0.00 s  injected         {_what(plan, truth.phase)}")
        if plan.also_kill:
            os.kill(stack.part_pid(plan.also_kill), signal.SIGKILL)
            say(f"             killed           {plan.also_kill} of Surefoot itself")
        watch = Watch(store, pager, truth, run, say)
        resolved = watch.until_resolved(lambda: subject.ended, plan.timeout)
        say("waiting for the training to finish")
        finished = subject.finished()
        result = Result(plan, run, truth, losses=subject.losses)
        _fill(result, watch, store, stack)
        _judge(result, resolved=resolved, finished=finished)
        return result
    finally:
        subject.stop()
        store.close()


def _what(plan: Plan, phase: str) -> str:
    sent = "SIGKILL" if plan.kind == "kill" else "SIGSTOP"
    return f"{sent} to rank {plan.rank} in {phase or 'between phases'}"


def _fill(result: Result, watch: Watch, store: Store, stack: stacks.Stack) -> None:
    truth, i = result.truth, watch.incident
    starts = run_attempts(store, result.run)
    if starts and starts[0].first_step_at:
        result.cold_start = (starts[0].first_step_at - starts[0].launched_at).total_seconds()
    trigger = next((p for p in watch.pages() if p.action == "trigger"), None)
    result.seconds = {
        "detect": _since(truth.injected_at, i.detected_at if i else None),
        "page": _since(truth.injected_at, trigger.at if trigger else None),
        "locate": _since(truth.injected_at, i.located_at if i else None),
        "act": _since(truth.injected_at, i.acted_at if i else None),
        "recover": _since(truth.injected_at, i.recovered_at if i else None),
    }
    entries = compute_run(store, result.run, utcnow())
    result.ledger = {str(category): micros / 1e6 for category, micros in spent(entries).items() if micros}
    result.goodput = goodput(entries)
    if i:
        result.incident, result.attempt = i.incident, i.attempt
        result.link = f"{stack.settings.console.link}/incident?incident={i.incident}"
        result.located = Located(i.layer, i.node, i.rank)
        result.loss = loss_sentence(incident_costs(entries).get(i.incident, {}))
        result.action = next((a.kind for a in reversed(incident_actions(store, i.incident))), "")
    result.pages = [f"{p.action} {p.dedup_key}" for p in watch.pages()]


def _since(start: datetime, at: datetime | None) -> float | None:
    return None if at is None else (at - start).total_seconds()


def _judge(result: Result, *, resolved: bool, finished: bool) -> None:
    """Hold what was done against what was really injected."""
    truth, wrong = result.truth, result.wrong
    detected = bool(result.incident) and result.attempt == truth.attempt
    located = result.located == truth.located
    result.correct = {"detected": detected, "located": located, "recovered": finished and result.seconds["recover"] is not None}
    if not detected:
        wrong.append(f"the incident names attempt {result.attempt or 'none'}, the fault was in {truth.attempt}")
    if not located:
        wrong.append(f"located at {result.located or 'no place'}, injected at {truth.located}")
    if not finished:
        wrong.append("the training did not finish with exit code 0")
    if not resolved:
        wrong.append("the incident was not resolved, or its pages were not sent")
    if result.incident and [p.split()[0] for p in result.pages if not p.startswith("acknowledge ")] != ["trigger", "resolve"]:
        wrong.append(f"pages were {result.pages}, not one trigger and one resolve")


@contextmanager
def _folder(plan: Plan) -> Iterator[Path]:
    """The drill's folder: the one to keep, or one that goes when the drill ends."""
    if plan.keep:
        if plan.keep.exists() and any(plan.keep.iterdir()):
            raise SettingsError(f"{plan.keep} is not empty: name a new folder")
        yield plan.keep.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="surefoot-drill-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _pager() -> Iterator[Pager]:
    pager = Pager()
    try:
        yield pager
    finally:
        pager.close()
