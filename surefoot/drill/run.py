"""A drill from beginning to end: a stack, a real training, a real fault, and the judgement of what was done about it."""

import os
import signal
import uuid
from datetime import datetime
from typing import Any

from pipeline.catalog.layers import ActionMode
from pipeline.clock import utcnow
from pipeline.loss import loss_sentence
from pipeline.queries.incident_actions import incident_actions
from pipeline.queries.run_attempts import run_attempts
from pipeline.store import Store
from slo.figures import goodput, incident_costs, spent
from slo.ledger_now import compute_run
from surefoot.drill import inject as subjects
from surefoot.drill import stack as stacks
from surefoot.drill.judge import judge
from surefoot.drill.pager import ROUTING_KEY, Pager
from surefoot.drill.plan import End, Located, NotCarriedOut, Pause, Plan, Result, Say
from surefoot.drill.stage import stage
from surefoot.drill.watch import Watch


def drill(plan: Plan, say: Say, pause: Pause) -> Result:
    """Carry out `plan` on a stack of its own, telling its progress by `say` and sleeping by `pause`, which may raise to end it.

    Raises SurefootError where the drill itself could not be run (a port, the training, the folder).
    """
    try:
        with stage("surefoot-drill-", plan.keep) as (folder, pager):
            say(f"starting a stack in {folder}")
            with stacks.running(folder, settings_for(plan, pager), pause) as stack:
                say(f"console {stack.settings.console.link}")
                return hurt(plan, stack, pager, say, pause)
    except NotCarriedOut as e:
        raise NotCarriedOut(f"{e}; " + (f"its logs are in {plan.keep}" if plan.keep else "its logs are kept with --keep FOLDER")) from e


def settings_for(plan: Plan, pager: Pager) -> dict[str, Any]:
    """The settings that a drill adds to a stack: its pager, and how far the restart may go by itself."""
    return {
        "receivers": [{"kind": "log"}, {"kind": "pagerduty", "url": pager.url, "key": ROUTING_KEY}],
        "recovery": {"modes": {"restart_run": str(plan.mode)}},
    }


def hurt(plan: Plan, stack: stacks.Stack, pager: Pager, say: Say, pause: Pause) -> Result:
    """Train on `stack`, inject the fault, watch, and judge."""
    run = f"drill-{plan.kind}-{uuid.uuid4().hex[:6]}"
    say(f"training {plan.ranks} ranks as run {run}")
    with subjects.running(plan, stack, run) as subject:
        store = Store.connect(stack.settings)
        try:
            truth = subjects.inject(plan, stack, subject, pause)
            say(f"  +  0.00 s  injected         {_what(plan, truth.phase)}")
            if plan.also_kill:
                os.kill(stack.part_pid(plan.also_kill), signal.SIGKILL)
                say(f"             killed           {plan.also_kill} of Surefoot itself")
            watch = Watch(store, pager, truth, run, say, pause)
            resolved = watch.until_resolved(lambda: subject.ended, plan.timeout)
            end = _end(resolved, plan, subject, say, pause)
            result = Result(plan, run, truth, losses=subject.losses)
            _fill(result, watch, store, stack)
            judge(result, end)
            return result
        finally:
            store.close()


def _end(resolved: bool, plan: Plan, subject: subjects.Subject, say: Say, pause: Pause) -> End:
    """Let the training finish; where the fault was not mended in time, stop it."""
    if not resolved and not subject.ended:
        say(f"not mended in {plan.timeout:g} s: stopping the training")
        subject.stop()
        return End(resolved=False, finished=False, gave_up=True)
    say("waiting for the training to finish")
    return End(resolved=resolved, finished=subject.finished(plan, pause), gave_up=False)


def _what(plan: Plan, phase: str) -> str:
    sent = "SIGKILL" if plan.kind == "kill" else "SIGSTOP"
    return f"{sent} to rank {plan.rank} in {phase or 'between phases'}"


def _fill(result: Result, watch: Watch, store: Store, stack: stacks.Stack) -> None:
    plan, truth, i = result.plan, result.truth, watch.incident
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
        actions = incident_actions(store, i.incident)
        result.action = actions[-1].kind if actions else ""
        states = {a.new_state for a in actions}
        result.unapproved = plan.mode == ActionMode.APPROVE and "waiting" in states and "issued" not in states
    result.pages = [f"{p.action} {p.dedup_key}" for p in watch.pages()]


def _since(start: datetime, at: datetime | None) -> float | None:
    return None if at is None else (at - start).total_seconds()
