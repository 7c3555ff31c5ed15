"""heartbeat_lost: a node is not heard. Which of its two voices is missing tells what that means.

Agent silent, launcher polling: telemetry is lost and the run may be well, so nothing is done to it. Both
silent: the host may be down. Launcher silent, agent speaking: the launcher is gone, and nobody watches the
ranks. Of several launchers one that ended, or that was started anew, has left its run: the others cannot go
on as they are. None of it is said while ingest itself was deaf, nor of a run that ended.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from alerts.detectors.rank_exit import replaced
from alerts.detectors.verdict import Verdict, key_of
from alerts.snapshot import GONE, AttemptLook, LauncherLook, RankLook, RunLook, Snapshot
from pipeline.catalog.faults import HOST_DOWN, LAUNCHER_LOST, NODE_LEFT, TELEMETRY_LOST, Fault
from pipeline.catalog.runs import GONE as LEFT
from pipeline.catalog.runs import READY, STARTING
from pipeline.records import FindingTransition

NAME = "heartbeat_lost"
RANKS_GONE = "its launcher is gone and so are its ranks"  # why the leader ends a run
SETTLE = 2.0  # seconds after a launcher's last word in which its run may end, too, as when a scheduler ends the job on all nodes
UNHEARD = 60.0  # seconds without a word of a rank, under an agent that speaks, after which there is none
MARGIN = 2.0  # seconds beyond an agent's interval until its readings are missed


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each node of a running attempt whose agent is not heard, and for each run in progress whose launcher alone is not."""
    if _deaf(snapshot):
        return []
    up = [run for run, attempt in snapshot.active() if attempt.state in ("starting", "running") or attempt.nodes]
    pairs = ((run, one) for run in up for one in snapshot.launchers if one.run == run.run and one.node in run.members)
    silent = [verdict for run, launcher in pairs if (verdict := _verdict(snapshot, run, launcher, now))]
    alone = ((run, launcher) for run in snapshot.runs for launcher in lost_launchers(snapshot, run, now))
    left = (verdict for run, _ in snapshot.active() for verdict in _left(snapshot, run, now))
    return [*silent, *(_alone(run, launcher, now) for run, launcher in alone if launcher.state != LEFT), *left]


def lost_launchers(snapshot: Snapshot, run: RunLook, now: datetime) -> list[LauncherLook]:
    """The launchers of a run in progress that alone are gone: their nodes' agents spoke when they had been silent for long.

    A host that goes down takes both at about the same time, and which of them is missed first says nothing.
    """
    if run.state != "started" or run.abandoned or _deaf(snapshot):
        return []
    return [one for node in run.members if (one := _lost(snapshot, run, node, now))]


def _lost(snapshot: Snapshot, run: RunLook, node: str, now: datetime) -> LauncherLook | None:
    mine = (one for one in snapshot.launchers if one.run == run.run and one.node == node)
    launcher = max(mine, key=lambda one: one.at, default=None)
    agent = _agent_silence(snapshot, run, node)
    if launcher is None or agent is None or agent > _limit(snapshot, run, node):
        return None
    silence = min(launcher.age, (now - run.changed_at).total_seconds())  # of a run that begins again the last beat is an old one
    return launcher if silence - agent > snapshot.detect.heartbeat else None


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why the node counts as heard again, or nobody needs it any more. None: it is not, or cannot be told."""
    run = snapshot.run(finding.run)
    if run is None:
        return None
    launcher = next((one for one in snapshot.launchers if one.run == run.run and one.node == finding.node), None)
    speaks = launcher is not None and launcher.age <= snapshot.detect.heartbeat / 2
    if finding.fault == NODE_LEFT.name:
        return replaced(run, finding.attempt) or ("the run ended" if run.state != "started" else None)
    if finding.fault == LAUNCHER_LOST.name:
        speaks = speaks and _takes_part(run, launcher)
        return "the launcher is heard again" if speaks else _told(run) or replaced(run, finding.attempt)
    if run.state != "started":
        return "the run ended"
    agent = _agent_silence(snapshot, run, finding.node)
    heard = agent is not None and agent <= snapshot.detect.heartbeat / 2
    if finding.fault == HOST_DOWN.name:
        return replaced(run, finding.attempt) or ("agent and launcher are heard again" if heard and speaks else None)
    return "the agent is heard again" if heard else None


def _told(run: RunLook) -> str | None:
    """A failed run whose launcher said so itself was not lost; of one that the leader ended somebody has to know."""
    return "its launcher told the run's end" if run.state == "failed" and run.reason != RANKS_GONE else None


def _alone(run: RunLook, launcher: LauncherLook, now: datetime) -> Verdict:
    reason = f"the launcher on {launcher.node} has been silent for {launcher.age:.0f} s while the node's agent speaks"
    return _make(LAUNCHER_LOST, run, launcher, reason, now - timedelta(seconds=launcher.age), 0.9)


def _takes_part(run: RunLook, launcher: LauncherLook | None) -> bool:
    """Whether a launcher that is heard is the one that the run had, and not one that was started in its place."""
    current = run.current
    return launcher is not None and (current is None or not current.nodes or launcher.attempt == current.attempt or launcher.state == READY)


def _left(snapshot: Snapshot, run: RunLook, now: datetime) -> Iterator[Verdict]:
    """A verdict for each node of an attempt on several whose launcher does not take part in it any more."""
    current = run.current
    if current is None or not current.nodes or current.stopping_at:
        return
    lost = lost_launchers(snapshot, run, now)
    others = snapshot.launchers_of(run.run)
    for one in snapshot.launchers:
        if one.run != run.run or one.node not in current.nodes:
            continue
        since, why = now - timedelta(seconds=one.age), ""
        if one.state == LEFT and one.age > SETTLE:
            why = "its launcher ended"
        elif one in lost and _ranks_gone(snapshot, current, one):
            why = RANKS_GONE
        elif one.state == STARTING and one.heard and not one.meant_by(current) and any(_takes_part(run, other) for other in others):
            since, why = one.at - timedelta(seconds=one.waited), "its launcher was started anew"
        if why:
            yield _make(NODE_LEFT, run, one, f"{one.node} has left attempt {current.attempt}: {why}", since, 0.95)


def _ranks_gone(snapshot: Snapshot, current: AttemptLook, launcher: LauncherLook) -> bool:
    ranks = [r for r in snapshot.ranks_of(current.attempt) if r.node == launcher.node]
    if ranks and all(r.process_state in GONE for r in ranks):
        return True
    return launcher.age > UNHEARD and all(r.process_state in GONE or r.seen_age > UNHEARD for r in ranks)


def _verdict(snapshot: Snapshot, run: RunLook, launcher: LauncherLook, now: datetime) -> Verdict | None:
    silence = _agent_silence(snapshot, run, launcher.node)
    allowed = _limit(snapshot, run, launcher.node)
    if silence is None or silence <= allowed:
        return None
    if launcher.age <= snapshot.detect.heartbeat:
        reason = f"the agent of {launcher.node} has been silent for {silence:.0f} s; its launcher still speaks"
        return _make(TELEMETRY_LOST, run, launcher, reason, now - timedelta(seconds=silence), 1.0)
    both = min(silence, launcher.age)
    reason = f"agent and launcher of {launcher.node} have both been silent for {both:.0f} s"
    return _make(HOST_DOWN, run, launcher, reason, now - timedelta(seconds=both), 0.8)


def _agent_silence(snapshot: Snapshot, run: RunLook, node: str) -> float | None:
    """Seconds since the node's agent sent anything; None where it was never heard and may not be there at all."""
    ages = [r.seen_age for r in _ranks(snapshot, run, node)]
    if node in snapshot.agents:
        ages.append(snapshot.agents[node])
    return min(ages, default=None)


def _limit(snapshot: Snapshot, run: RunLook, node: str) -> float:
    """An agent that was reading live ranks is missed sooner than one that only sends its readings now and then."""
    ranks = _ranks(snapshot, run, node)
    host = snapshot.agents.get(node)
    if ranks and (host is None or min(r.seen_age for r in ranks) <= host):
        return max(snapshot.detect.heartbeat, snapshot.agent_interval + MARGIN)
    return snapshot.detect.heartbeat + snapshot.agent_interval


def _ranks(snapshot: Snapshot, run: RunLook, node: str) -> list[RankLook]:
    return [r for r in snapshot.ranks if r.run == run.run and r.node == node]


def _deaf(snapshot: Snapshot) -> bool:
    """Whether ingest has not been hearing for long enough to tell who is silent."""
    steady = snapshot.ingest_steady
    return steady is None or steady < max(snapshot.detect.heartbeat, snapshot.agent_interval + MARGIN)


def _make(fault: Fault, run: RunLook, launcher: LauncherLook, reason: str, onset: datetime, confidence: float) -> Verdict:
    return Verdict(
        key=key_of(f"{NAME}/{fault.name}", f"node:{launcher.node}", run.run),
        detector=NAME,
        fault=fault,
        run=run.run,
        attempt=run.current.attempt if run.current else "",
        node=launcher.node,
        onset=onset,
        confidence=confidence,
        reason=reason,
        evidence={"launcher": {"state": launcher.state, "at": launcher.at.isoformat(), "ranks": launcher.ranks}},
    )
