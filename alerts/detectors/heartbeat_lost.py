"""heartbeat_lost: a node is not heard. Which of its two voices is missing tells what that means.

Agent silent, launcher polling: telemetry is lost and the run may be well, so nothing is done to it. Both
silent: the host may be down. Launcher silent, agent speaking: the launcher is gone, and nobody watches the
ranks; where no agent was ever heard, a long silence says so. None of it is said while ingest itself was deaf, nor of a run that ended.
"""

from datetime import datetime, timedelta

from alerts.detectors.rank_exit import replaced
from alerts.detectors.verdict import Verdict, key_of
from alerts.snapshot import LauncherLook, RankLook, RunLook, Snapshot
from pipeline.catalog.faults import HOST_DOWN, LAUNCHER_LOST, TELEMETRY_LOST, Fault
from pipeline.catalog.runs import GONE, READY
from pipeline.records import FindingTransition

NAME = "heartbeat_lost"
RANKS_GONE = "its launcher is gone and so are its ranks"  # why the leader ends a run
UNHEARD = 60.0  # seconds without a word of a rank, under an agent that speaks, after which there is none
ALONE = 900.0  # seconds without a word of a launcher, after which it is gone though no agent is there to tell its silence from its host's
MARGIN = 2.0  # seconds beyond an agent's interval until its readings are missed


def detect(snapshot: Snapshot, now: datetime) -> list[Verdict]:
    """A verdict for each node of a running attempt whose agent is not heard, and for each run in progress whose launcher alone is not."""
    if deaf(snapshot):
        return []
    up = [run for run, attempt in snapshot.active() if attempt.state in ("starting", "running") or attempt.nodes]
    pairs = ((run, one) for run in up for one in snapshot.launchers if one.run == run.run and one.node in run.members and _needed(run, one))
    silent = [verdict for run, launcher in pairs if (verdict := _verdict(snapshot, run, launcher, now))]
    alone = ((run, launcher) for run in snapshot.runs for launcher in lost_launchers(snapshot, run, now))
    return [
        *silent,
        *(_alone(snapshot, run, launcher, now) for run, launcher in alone if launcher.state != GONE and _needed(run, launcher)),
    ]


def _needed(run: RunLook, launcher: LauncherLook) -> bool:
    """Whether a run still needs a node of it: not where its command has ended well."""
    return not launcher.well(run.current)


def lost_launchers(snapshot: Snapshot, run: RunLook, now: datetime) -> list[LauncherLook]:
    """The launchers of a run in progress that alone are gone: they said so, or their agents spoke when they had long been silent.

    A host that goes down takes both at about the same time, and which of them is missed first says nothing.
    """
    if run.state != "started" or run.abandoned or deaf(snapshot):
        return []
    return [one for node in run.members if (one := _lost(snapshot, run, node, now))]


def _lost(snapshot: Snapshot, run: RunLook, node: str, now: datetime) -> LauncherLook | None:
    mine = (one for one in snapshot.launchers if one.run == run.run and one.node == node)
    launcher = max(mine, key=lambda one: one.at, default=None)
    agent = _agent_silence(snapshot, run, node)
    if launcher is None or (agent is not None and agent > _limit(snapshot, run, node)):
        return None
    silence = min(launcher.age, (now - run.changed_at).total_seconds())  # of a run that begins again the last beat is an old one
    if launcher.state == GONE:
        agent = 0.0
    return launcher if silence > (snapshot.detect.heartbeat + agent if agent is not None else ALONE) else None


def clears(finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
    """Why the node counts as heard again, or nobody needs it any more. None: it is not, or cannot be told."""
    run = snapshot.run(finding.run)
    if run is None:
        return None
    launcher = next((one for one in snapshot.launchers if one.run == run.run and one.node == finding.node), None)
    speaks = launcher is not None and launcher.age <= snapshot.detect.heartbeat / 2
    if finding.fault == LAUNCHER_LOST.name:
        speaks = speaks and takes_part(run, launcher)
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


def _alone(snapshot: Snapshot, run: RunLook, launcher: LauncherLook, now: datetime) -> Verdict:
    unseen = _agent_silence(snapshot, run, launcher.node) is None
    agent = "and no agent is heard there" if unseen else "while the node's agent speaks"
    reason = f"the launcher on {launcher.node} has been silent for {launcher.age:.0f} s {agent}"
    return of_launcher(NAME, LAUNCHER_LOST, run, launcher, reason, now - timedelta(seconds=launcher.age), 0.9)


def takes_part(run: RunLook, launcher: LauncherLook | None) -> bool:
    """Whether a launcher that is heard is the one that the run had, and not one that was started in its place."""
    current = run.current
    return launcher is not None and (current is None or not current.nodes or launcher.attempt == current.attempt or launcher.state == READY)


def _verdict(snapshot: Snapshot, run: RunLook, launcher: LauncherLook, now: datetime) -> Verdict | None:
    silence = _agent_silence(snapshot, run, launcher.node)
    allowed = _limit(snapshot, run, launcher.node)
    if silence is None or silence <= allowed:
        return None
    if launcher.age <= snapshot.detect.heartbeat:
        reason = f"the agent of {launcher.node} has been silent for {silence:.0f} s; its launcher still speaks"
        return of_launcher(NAME, TELEMETRY_LOST, run, launcher, reason, now - timedelta(seconds=silence), 1.0)
    both = min(silence, launcher.age)
    reason = f"agent and launcher of {launcher.node} have both been silent for {both:.0f} s"
    return of_launcher(NAME, HOST_DOWN, run, launcher, reason, now - timedelta(seconds=both), 0.8)


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


def deaf(snapshot: Snapshot) -> bool:
    """Whether ingest has not been hearing for long enough to tell who is silent."""
    steady = snapshot.ingest_steady
    return steady is None or steady < max(snapshot.detect.heartbeat, snapshot.agent_interval + MARGIN)


def of_launcher(
    detector: str, fault: Fault, run: RunLook, launcher: LauncherLook, reason: str, onset: datetime, confidence: float
) -> Verdict:
    """The verdict of `detector` about the node of a launcher."""
    return Verdict(
        key=key_of(f"{detector}/{fault.name}", f"node:{launcher.node}", run.run),
        detector=detector,
        fault=fault,
        run=run.run,
        attempt=run.current.attempt if run.current else "",
        node=launcher.node,
        onset=onset,
        confidence=confidence,
        reason=reason,
        evidence={"launcher": {"state": launcher.state, "at": launcher.at.isoformat(), "ranks": launcher.ranks}},
    )
