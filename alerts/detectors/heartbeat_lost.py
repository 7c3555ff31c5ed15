"""heartbeat_lost: a node is not heard. Which of its two voices is missing tells what that means.

Agent silent, launcher polling: telemetry is lost and the run may be well, so nothing is done to it. Both
silent: the host may be down. Neither is said while ingest itself was deaf, and a launcher that alone falls
silent, or a run that ended, is neither.
"""

from datetime import datetime, timedelta

from alerts.detectors.rank_exit import replaced
from alerts.detectors.verdict import Verdict, key_of
from alerts.snapshot import LauncherLook, RankLook, RunLook, Snapshot
from pipeline.catalog.faults import HOST_DOWN, TELEMETRY_LOST, Fault
from pipeline.records import FindingTransition

NAME = "heartbeat_lost"
MARGIN = 2.0  # seconds beyond an agent's interval until its readings are missed


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each node of a running attempt whose agent is not heard."""
    if snapshot.ingest_steady is None or snapshot.ingest_steady < _deaf_time(snapshot):
        return []
    up = [run for run, attempt in snapshot.active() if attempt.state in ("starting", "running")]
    pairs = ((run, launcher) for run in up for launcher in snapshot.launchers if launcher.run == run.run)
    return [verdict for run, launcher in pairs if (verdict := _verdict(snapshot, run, launcher, now))]


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why the node counts as heard again, or nobody needs it any more. None: it is not, or cannot be told."""
    run = snapshot.run(finding.run)
    if run is None:
        return None
    if run.state != "started":
        return "the run ended"
    launcher = next((one for one in snapshot.launchers if one.run == run.run and one.node == finding.node), None)
    agent = _agent_silence(snapshot, run, finding.node)
    heard = agent is not None and agent <= snapshot.detect.heartbeat / 2
    if finding.fault == HOST_DOWN.name:
        speaks = launcher is not None and launcher.age <= snapshot.detect.heartbeat / 2
        return replaced(run, finding.attempt) or ("agent and launcher are heard again" if heard and speaks else None)
    return "the agent is heard again" if heard else None


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


def _deaf_time(snapshot: Snapshot) -> float:
    return max(snapshot.detect.heartbeat, snapshot.agent_interval + MARGIN)


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
