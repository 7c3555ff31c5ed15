"""Transitions folded into where a run and its attempts stand."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from alerts.snapshot import AttemptLook, LauncherLook, RunLook
from pipeline.records import AttemptTransition


def attempts_of(transitions: Iterable[AttemptTransition]) -> tuple[AttemptLook, ...]:
    """The attempts of one run, by launch. The state is the furthest reached: leader and launcher write by different clocks.

    A state that is not ours (a newer launcher's) says nothing here: one row must never stop the leader.
    """
    by_name: dict[str, list[AttemptTransition]] = {}
    for t in transitions:
        if t.new_state in AttemptTransition.states:
            by_name.setdefault(t.attempt, []).append(t)
    return tuple(sorted((_attempt(rows) for rows in by_name.values()), key=lambda a: a.launch))


def _attempt(rows: Sequence[AttemptTransition]) -> AttemptLook:
    first: dict[str, datetime] = {}
    for t in rows:
        first[t.new_state] = min(t.at, first.get(t.new_state, t.at))
    last = max(rows, key=lambda t: (t.states.index(t.new_state), t.at))
    return AttemptLook(
        run=last.run,
        attempt=last.attempt,
        launch=last.launch,
        state=last.new_state,
        issued_at=first.get("issued"),
        starting_at=first.get("starting"),
        running_at=first.get("running"),
        stopping_at=first.get("stopping"),
        ended_at=first.get("ended"),
        node=last.node,
        ranks=max(t.ranks for t in rows),
        exit_code=last.exit_code,
        reason=last.reason,
        action=next((t.action for t in rows if t.action), ""),
        nodes=tuple(filter(None, next((t.nodes for t in rows if t.nodes), "").split(","))),
    )


def run_look(run: RunLook, launchers: Sequence[LauncherLook], now: datetime, patience: timedelta) -> RunLook:
    """`run`, marked as abandoned where neither it, its attempts nor a launcher of it said anything for `patience`."""
    if any(one.run == run.run for one in launchers):
        return run
    times = [run.changed_at, *(at for a in run.attempts for at in (a.issued_at, a.began_at, a.ended_at) if at)]
    return replace(run, abandoned=now - max(times) > patience)
