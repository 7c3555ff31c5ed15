"""A drill from beginning to end: a stack, a real training, a real fault, and the judgement of what was done about it."""

import os
import signal
import time
import uuid
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from pipeline.catalog.layers import ActionMode
from pipeline.clock import utcnow
from pipeline.loss import loss_sentence
from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.incident_actions import incident_actions
from pipeline.queries.run_attempts import run_attempts
from pipeline.queries.run_transitions import run_transitions
from pipeline.records import IncidentTransition
from pipeline.store import Store
from slo.figures import goodput, incident_costs, spent
from slo.ledger_now import compute_run
from surefoot.drill import hosts
from surefoot.drill import inject as subjects
from surefoot.drill import stack as stacks
from surefoot.drill.judge import judge
from surefoot.drill.kinds.kind import Scene
from surefoot.drill.kinds.registry import BY_NAME
from surefoot.drill.pager import ROUTING_KEY, Pager
from surefoot.drill.plan import End, Located, NotCarriedOut, Pause, Plan, Result, Say
from surefoot.drill.stage import stage
from surefoot.drill.watch import Watch

TOLD_SECONDS = 10.0  # for the last words of a launcher that has ended to be stored
UNSEEN_SECONDS = 12.0  # that a fault is watched which nothing can find yet: whether it is taken for another


def drill(plan: Plan, say: Say, pause: Pause) -> Result:
    """Carry out `plan` on a stack of its own, telling its progress by `say` and sleeping by `pause`, which may raise to end it.

    Raises SurefootError where the drill itself could not be run (a port, the training, the folder), NotPossible where this
    machine does not allow it.
    """
    BY_NAME[plan.kind].prepare()
    if plan.nodes > 1:
        hosts.prepare()
    try:
        with stage("surefoot-drill-", plan.keep) as (folder, pager):
            say(f"starting a stack in {folder}")
            with stacks.running(folder, settings_for(plan, pager), pause) as stack:
                say(f"console {stack.settings.console.link}")
                return hurt(plan, stack, pager, say, pause)
    except NotCarriedOut as e:
        raise NotCarriedOut(f"{e}; " + (f"its logs are in {plan.keep}" if plan.keep else "its logs are kept with --keep FOLDER")) from e


def settings_for(plan: Plan, pager: Pager) -> dict[str, Any]:
    """The settings that a drill adds to a stack: its pager, how far the restart may go by itself, and how often the agent looks."""
    interval = BY_NAME[plan.kind].agent_interval
    return {
        **({"agent": {"interval": interval}} if interval else {}),
        **({"ingest": {"host": hosts.BRIDGE}} if plan.nodes > 1 else {}),
        "receivers": [{"kind": "log"}, {"kind": "pagerduty", "url": pager.url, "key": ROUTING_KEY}],
        "recovery": {"modes": {"restart_run": str(plan.mode)}},
    }


def hurt(plan: Plan, stack: stacks.Stack, pager: Pager, say: Say, pause: Pause) -> Result:
    """Train on `stack`, inject the fault, watch, and judge."""
    kind = BY_NAME[plan.kind]
    run = f"drill-{plan.kind}-{uuid.uuid4().hex[:6]}"
    with kind.ground(stack.folder / run) as ground:
        say(f"training {plan.ranks} ranks{f' on {plan.nodes} nodes' if plan.nodes > 1 else ''} as run {run}{ground.told}")
        started, nodes = _start(plan, stack, run, ground.prefix)
        with subjects.running(started) as subject:
            store = Store.connect(stack.settings)
            try:
                scene = Scene(plan, stack, subject, ground, pause, nodes)
                truth = kind.inject(scene)
                say(f"  +  0.00 s  injected         {truth.what}")
                if plan.also_kill:
                    os.kill(stack.part_pid(plan.also_kill), signal.SIGKILL)
                    say(f"             killed           {plan.also_kill} of Surefoot itself")
                watch = Watch(store, pager, truth, run, say, pause, kind.remove and partial(kind.remove, scene))
                end = _follow(watch, plan, subject, say, pause)
                _await_told(store, run, pause)
                watch.look()  # what came while the training was finishing
                watch.tell()
                result = Result(plan, run, truth, losses=subject.losses)
                _fill(result, watch, store, stack)
                judge(result, end)
                return result
            finally:
                store.close()


def _start(plan: Plan, stack: stacks.Stack, run: str, prefix: Sequence[str]) -> tuple[subjects.Subject, Sequence[hosts.Host]]:
    if plan.nodes > 1:
        return hosts.start(plan, stack, run)
    return subjects.start(plan, stack, run, prefix=prefix), ()


def _follow(watch: Watch, plan: Plan, subject: subjects.Subject, say: Say, pause: Pause) -> End:
    """Watch until it is over, or, what cannot be found yet, until it could have been taken for something else."""
    if watch.truth.fault.waits_for:
        say(f"             nothing finds {watch.truth.fault.name} yet: watching whether it is taken for something else")
        watch.until_found(lambda: subject.ended, min(UNSEEN_SECONDS, plan.timeout))
        watch.take_away()
        watch.tell()
        return _end(True, plan, subject, say, pause)
    return _end(watch.until_resolved(lambda: subject.ended, plan.timeout), plan, subject, say, pause)


def _end(resolved: bool, plan: Plan, subject: subjects.Subject, say: Say, pause: Pause) -> End:
    """Let the training finish; where the fault was not mended in time, stop it."""
    if not resolved and not subject.ended:
        say(f"not mended in {plan.timeout:g} s: stopping the training")
        subject.stop()
        return End(resolved=False, finished=False, gave_up=True)
    say("waiting for the training to finish")
    return End(resolved=resolved, finished=subject.finished(plan, pause), gave_up=False)


def _await_told(store: Store, run: str, pause: Pause) -> None:
    """The launcher is gone, and its last words may still be on their way: what is reckoned before them knows no end of the run."""
    deadline = time.monotonic() + TOLD_SECONDS
    while time.monotonic() < deadline:
        told = run_transitions(store, run)
        if told and told[-1].new_state != "started":
            return
        pause(0.1)


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
        "recover": _since(truth.injected_at, _recovered_at(i, watch)),
    }
    if watch.removed_at:
        result.seconds["remove"] = _since(truth.injected_at, watch.removed_at)
    entries = compute_run(store, result.run, utcnow())
    result.ledger = {str(category): micros / 1e6 for category, micros in spent(entries).items() if micros}
    result.goodput = goodput(entries)
    if i:
        result.incident, result.attempt, result.fault = i.incident, i.attempt, i.fault
        result.link = f"{stack.settings.console.link}/incident?incident={i.incident}"
        result.located = Located(i.layer, i.node, i.rank, i.device)
        result.others = list(watch.others.values())
        result.loss = loss_sentence(incident_costs(entries).get(i.incident, {}))
        actions = incident_actions(store, i.incident)
        result.action = actions[-1].kind if actions else ""
        states = {a.new_state for a in actions}
        result.unapproved = plan.mode == ActionMode.APPROVE and "waiting" in states and "issued" not in states
    told = [t.nodes.split(",") for t in attempts_of_runs(store, [result.run]) if t.nodes]
    if told:
        result.nodes, result.nodes_after = tuple(told[0]), tuple(told[-1])
    result.pages = [f"{p.action} {p.dedup_key}" for p in watch.pages()]


def _recovered_at(i: IncidentTransition | None, watch: Watch) -> datetime | None:
    """When the new attempt completed its first step; of what nothing is done about, when it was over, after the drill took it away."""
    if i is None:
        return None
    if watch.truth.mended_by_action:
        return i.recovered_at
    removed, over = watch.removed_at, i.resolved_at
    return over if removed and over and over >= removed else None


def _since(start: datetime, at: datetime | None) -> float | None:
    return None if at is None else (at - start).total_seconds()
