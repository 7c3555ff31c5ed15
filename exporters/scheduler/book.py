"""What a scheduler said last, and from that what has happened since. Pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

from exporters.collector import Reading
from exporters.labels import clean
from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from pipeline import hostlist
from pipeline.catalog.events import NODE_CONDITION, PLACE_LOST
from pipeline.catalog.metrics import SCHED_JOB, SCHED_NODE
from pipeline.records import Event

MOST_JOBS: Final = 5000  # that are told of; those that run or have lost their place come first


def id_of(*words: object) -> str:
    """An id that follows from what the words tell of."""
    return blake2b("\x1f".join(map(str, words)).encode(errors="replace"), digest_size=16).hexdigest()


class Book:
    """Keeps what `scheduler` said at the last look. `node` is the one whose agent looks."""

    def __init__(self, scheduler: str, node: str) -> None:
        self._scheduler, self._node = scheduler, node
        self._nodes: dict[str, SchedNode] | None = None
        self._jobs: dict[str, SchedJob] | None = None

    def nodes(self, found: Sequence[SchedNode], now: datetime) -> Iterator[Reading | Event]:
        """The nodes' readings, and their conditions that began or ended since the last look."""
        before, self._nodes = self._nodes, {node.name: node for node in found}
        for node in self._nodes.values():
            yield self._node_reading(node)
            if before is not None and node.name in before:
                yield from self._conditions(before[node.name], node, now)

    def jobs(self, found: Sequence[SchedJob], now: datetime) -> Iterator[Reading | Event]:
        """The jobs' readings, and those that have lost their place since the last look."""
        ranked = sorted(found, key=lambda job: not (job.running or job.unplaced_since or job.lost))[:MOST_JOBS]
        before, self._jobs = self._jobs, {job.id: job for job in ranked}
        for job in ranked:
            yield self._job_reading(job, now)
            earlier = (before or {}).get(job.id)
            why = job.lost or ("requeued" if earlier and (job.starts or 0) > (earlier.starts or 0) else "")
            known = earlier is not None and (earlier.lost, earlier.starts) == (job.lost, job.starts)
            # What was so at the first look happened nobody knows when, unless the scheduler says.
            if why and not known and (before is not None or job.lost_at):
                yield self._lost(job, earlier, why, now)

    def _conditions(self, before: SchedNode, node: SchedNode, now: datetime) -> Iterator[Event]:
        for name in sorted(before.bad.keys() ^ node.bad.keys()):
            state = "began" if name in node.bad else "ended"
            reason = {**before.bad, **node.bad}[name]
            yield Event(
                id=id_of(self._scheduler, node.name, name, state, now.isoformat()),
                at=now,
                kind=NODE_CONDITION.name,
                layer=NODE_CONDITION.layer.value,
                severity=NODE_CONDITION.severity.value,
                node=node.name,
                code=clean(name),
                message=clean(reason),
                attrs={"scheduler": self._scheduler, "state": state, "reason": clean(reason)},
            )

    def _lost(self, job: SchedJob, earlier: SchedJob | None, why: str, now: datetime) -> Event:
        nodes = job.nodes or (earlier.nodes if earlier else ())
        return Event(
            id=id_of(self._scheduler, job.id, why, job.starts),
            at=datetime.fromtimestamp(job.lost_at, UTC) if job.lost_at else now,
            kind=PLACE_LOST.name,
            layer=PLACE_LOST.layer.value,
            severity=PLACE_LOST.severity.value,
            node=nodes[0] if nodes else self._node,
            run=job.run or (earlier.run if earlier else ""),
            code=why,
            message=clean(job.reason),
            attrs={
                "scheduler": self._scheduler,
                "job": job.name if "/" in job.name else job.id,
                "name": clean(job.name),
                "nodes": hostlist.fold(nodes),
            },
        )

    def _node_reading(self, node: SchedNode) -> Reading:
        return Reading(
            SCHED_NODE,
            {"node": node.name, "scheduler": self._scheduler},
            {
                "sched_node.ready": None if node.ready is None else int(node.ready),
                "sched_node.schedulable": None if node.schedulable is None else int(node.schedulable),
                "sched_node.gpus": node.gpus,
                "sched_node.gpus_used": node.gpus_used,
            },
        )

    def _job_reading(self, job: SchedJob, now: datetime) -> Reading:
        waiting = max(0.0, now.timestamp() - job.unplaced_since) if job.unplaced_since else 0.0
        return Reading(
            SCHED_JOB,
            {"node": self._node, "scheduler": self._scheduler, "job": job.name if "/" in job.name else job.id},
            {
                "sched_job.running": int(job.running),
                "sched_job.waiting": waiting,
                "sched_job.nodes": len(job.nodes),
                "sched_job.gpus": job.gpus,
                "sched_job.starts": job.starts,
            },
            {"run": job.run} if job.run else {},
        )
