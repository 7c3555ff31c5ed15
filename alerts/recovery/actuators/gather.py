"""Brings a run's launchers together: which nodes its next attempt takes, in what order, and who is left out.

A start waits until as many have come as the run takes at most, or for `patience` seconds once enough are there. A
restart is a barrier: every node of the attempt that was stopped must say that it is ready. One that does not is named
and left out, after `patience` seconds or at once where its host is known to be down, its launcher to be gone or said that it
ends; waiting launchers (spares) fill in.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from alerts.recovery.actuators.attempts import asking
from alerts.snapshot import AttemptLook, LauncherLook, RunLook, Snapshot
from alerts.transitions import LEADER, follow
from pipeline.catalog.runs import ASKS, GONE, READY, SLACK, STARTING, Nodes, parse_nodes
from pipeline.records import ActionTransition, AttemptTransition, Transition
from pipeline.wording import listed

TAKEN_UP = timedelta(seconds=60)  # that an issued attempt has until its launchers have begun it


def first(snapshot: Snapshot, used: Mapping[str, AttemptLook], patience: float, now: datetime) -> Iterator[AttemptTransition]:
    """An attempt for each run of several nodes whose launchers have come; `used`: the last attempts of runs that the snapshot has not."""
    waiting: dict[str, list[LauncherLook]] = {}
    for one in asking(snapshot):
        if one.age <= ASKS and parse_nodes(one.nodes).several:
            waiting.setdefault(one.run, []).append(one)
    for name, here in waiting.items():
        run, wanted = snapshot.run(name), parse_nodes(here[0].nodes)
        last = run.current if run else used.get(name)
        if last and (_on_its_way(last, here, now) or (run and _goes_on(snapshot, run, last))):
            continue  # these hear of it soon, or are spares
        if not (chosen := _found_together(here, wanted, patience)):
            continue
        launch = max((last.launch if last else 0) + 1, *(one.launch for one in chosen))
        yield _issue(name, f"{name}-{launch}", launch, chosen, f"the launchers of {_names(chosen)} have come", now)


def minted(snapshot: Snapshot) -> list[LauncherLook]:
    """The launchers of several nodes that carry an attempt which they began by themselves, as nobody answered."""
    return [one for one in snapshot.launchers if one.attempt and one.waited and one.heard and parse_nodes(one.nodes).several]


def adopt(snapshot: Snapshot, used: Mapping[str, AttemptLook], patience: float, now: datetime) -> Iterator[AttemptTransition]:
    """The attempts that launchers began by themselves, once those that did are heard: who takes part and who speaks is known then.

    Nobody is left out for having been heard late by an ingest that has just come back.
    """
    if (snapshot.ingest_steady or 0.0) < 2 * ASKS:
        return
    together: dict[tuple[str, str], list[LauncherLook]] = {}
    for one in minted(snapshot):
        together.setdefault((one.run, one.attempt), []).append(one)
    for (name, attempt), here in together.items():
        run, last, wanted = snapshot.run(name), used.get(name), parse_nodes(here[0].nodes)
        known = run.attempt(attempt) if run else last if last and last.attempt == attempt else None
        if (known and known.nodes) or not (chosen := _found_together(here, wanted, patience)):
            continue
        began = now - timedelta(seconds=max(one.waited for one in here))
        yield _issue(name, attempt, here[0].launch, chosen, f"{_names(chosen)} began it while nobody answered them", began - SLACK)


def _found_together(here: Sequence[LauncherLook], wanted: Nodes, patience: float) -> list[LauncherLook]:
    """Those of `here` that an attempt takes, by name; none while fewer are there than it needs, or one more may be about to come."""
    complete = len(here) >= wanted.most or max(one.waited for one in here) >= patience
    return sorted(here, key=lambda one: one.node)[: wanted.most] if complete and len(here) >= wanted.least else []


@dataclass(frozen=True, slots=True)
class Barrier:
    """Where a restart of several nodes stands: who is ready, in the order that they keep; spares, who come after them; who is missing."""

    old: AttemptLook
    wanted: Nodes
    ready: tuple[LauncherLook, ...]
    spares: tuple[LauncherLook, ...]
    missing: tuple[str, ...]
    left: frozenset[str]  # of those the ones whose launchers ended, and will not come

    @property
    def chosen(self) -> list[LauncherLook]:
        """Who takes part in the next attempt."""
        return [*self.ready, *self.spares][: self.wanted.most]


def barrier(snapshot: Snapshot, action: ActionTransition) -> Barrier | None:
    """The barrier of a restart; None where its run has one node, or its attempt was issued already."""
    run = snapshot.run(action.run)
    old = run.attempt(action.attempt) if run else None
    if run is None or old is None or not old.nodes or run.attempt(action.new_attempt):
        return None
    heard = [one for one in snapshot.launchers_of(run.run) if one.age <= ASKS]
    here = {one.node: one for one in heard if one.state == READY or (one.state == STARTING and not one.attempt and not one.meant_by(old))}
    wanted = parse_nodes(next((one.nodes for one in heard if one.nodes), str(len(old.nodes))))
    return Barrier(
        old,
        wanted,
        tuple(here[node] for node in old.nodes if node in here),
        tuple(one for node, one in sorted(here.items()) if node not in old.nodes),
        tuple(node for node in old.nodes if node not in here),
        frozenset(one.node for one in snapshot.launchers if one.run == run.run and one.state == GONE and one.node not in here),
    )


def again(snapshot: Snapshot, action: ActionTransition, gone: Mapping[str, str], patience: float, now: datetime) -> list[Transition]:
    """What ends the barrier of a restart under way: the next attempt, and what is to be told of who is left out. Empty while it holds.

    `gone` are nodes that are known not to come, each with why. Nobody is left out for a silence that may be ingest's own.
    """
    found = barrier(snapshot, action)
    if found is None or len(found.chosen) < found.wanted.least:
        return []
    waited = min((now - action.at).total_seconds(), snapshot.ingest_steady or 0.0)
    unknown = [node for node in found.missing if node not in found.left and node not in gone]
    if unknown and waited < patience:
        return []
    why = _left_out(found, gone, patience)
    joined = [one for one in found.chosen if one.node not in found.old.nodes]
    why += f"; taken in: {_names(joined)}" if joined else ""
    made: list[Transition] = []
    if why:
        made.append(follow(action, action.new_state, why.removeprefix("; "), now))
    speaker = next((one for one in found.ready if one.node == found.old.members[0] and one.state == READY), None)
    if speaker is None and found.old.state != "ended":
        made.append(_ended(found.old, action, now))
    reason = f"all that go on are ready: {_names(found.chosen)}{why}"
    made.append(_issue(action.run, action.new_attempt, action.launch, found.chosen, reason, now, action.action, seen_by=found.ready))
    return made


def short_of(snapshot: Snapshot, run: RunLook, lost: str) -> str:
    """Why a run cannot go on without the node `lost`; "" where enough other launchers of it are heard."""
    others = [one for one in snapshot.launchers_of(run.run) if one.node != lost]
    wanted = parse_nodes(next((one.nodes for one in others if one.nodes), ""))
    if not wanted.several:
        return "the launcher on that host does not answer, so a restart in place cannot reach it"
    if len(others) < wanted.least:
        return f"the run takes {wanted} nodes and {len(others)} are left: start a launcher of it on another node, with --run-id {run.run}"
    return ""


def _on_its_way(last: AttemptLook, here: Sequence[LauncherLook], now: datetime) -> bool:
    """Whether one that asks was meant by the last attempt, and has not said yet that it began it."""
    if last.issued_at is None or now - last.issued_at >= TAKEN_UP:
        return False
    return any(one.meant_by(last) for one in here)


def _goes_on(snapshot: Snapshot, run: RunLook, current: AttemptLook) -> bool:
    """Whether the run has an attempt that somebody carries or waits behind, or that ended well everywhere and is only to be told so."""
    carried = any(one.attempt == current.attempt or one.state == READY for one in snapshot.launchers_of(run.run))
    return run.state == "started" and (carried or snapshot.all_well(run))


def _left_out(found: Barrier, gone: Mapping[str, str], patience: float) -> str:
    def why(node: str) -> str:
        if node in found.left:
            return "its launcher ended"
        return gone.get(node) or f"its launcher was not ready within {patience:g} s"

    return "".join(f"; {node} is left out: {why(node)}" for node in found.missing)


def _ended(old: AttemptLook, action: ActionTransition, now: datetime) -> AttemptTransition:
    """The end of an attempt whose first node, which would tell it, is gone."""
    return AttemptTransition(
        old_state=old.state,
        new_state="ended",
        reason=f"{old.members[0]}, which speaks for it, is gone",
        actor=LEADER,
        at=now,
        run=old.run,
        attempt=old.attempt,
        launch=old.launch,
        node=old.members[0],
        action=action.action,
        nodes=",".join(old.nodes),
    )


def _issue(
    run: str,
    attempt: str,
    launch: int,
    chosen: Sequence[LauncherLook],
    reason: str,
    now: datetime,
    action: str = "",
    seen_by: Sequence[LauncherLook] = (),
) -> AttemptTransition:
    """`seen_by`: those who have just looked for checkpoints; a spare did when it came, which may be long ago."""
    return AttemptTransition(
        old_state="",
        new_state="issued",
        reason=reason,
        actor=LEADER,
        at=now,
        run=run,
        attempt=attempt,
        launch=launch,
        node=chosen[0].node,
        resume_from=resume(seen_by) or resume(chosen),
        action=action,
        nodes=",".join(one.node for one in chosen),
        master=chosen[0].address,
    )


def resume(chosen: Sequence[LauncherLook]) -> str:
    """The checkpoint that all resume from: the newest that every one sees which sees any, as a file system may show it late to some."""
    seen = [one.resume.partition(" ") for one in chosen if one.resume]
    steps = [(int(step), path) for step, _, path in seen if step.isdecimal() and path]
    return min(steps, default=(0, ""))[1]


def _names(launchers: Sequence[LauncherLook]) -> str:
    return listed([one.node for one in launchers], 8)
