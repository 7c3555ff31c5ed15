"""Kubernetes as the agent follows it: nodes, pods with GPUs or of runs, volumes, drivers, events. One agent of a cluster does it."""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from exporters.collector import Observation, Reading, Site
from exporters.labels import clean
from exporters.scheduler.book import Book, id_of
from exporters.scheduler.kube_volumes import Volumes
from exporters.sources.scheduler import kube, kube_csi
from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from exporters.sources.scheduler.kube_api import Api, Change, Follower
from exporters.sources.scheduler.kube_csi import CsiPod, Orphan
from pipeline.catalog.event import EventKind
from pipeline.catalog.events import CLAIM_UNBOUND, VOLUME_ATTACH_FAILED
from pipeline.records import Event

OLD: Final = 600.0  # seconds after which an event of the first list is none of ours
MOST_EVENTS: Final = 50_000  # whose counts are remembered
NAME: Final = "kubernetes"
KINDS: Final[Mapping[str, EventKind]] = {
    "FailedAttachVolume": VOLUME_ATTACH_FAILED,
    "FailedMount": VOLUME_ATTACH_FAILED,
    "FailedMapVolume": VOLUME_ATTACH_FAILED,
    "ProvisioningFailed": CLAIM_UNBOUND,
    "FailedBinding": CLAIM_UNBOUND,
}


class KubeWatch:
    """Follows the API server of the settings."""

    def __init__(self, site: Site) -> None:
        one = site.settings.kubernetes
        api = Api(one.url, one.token_file, one.ca_file if one.url.startswith("https:") else "", site.settings.timeout)
        self._nodes = Follower(api, "/api/v1/nodes", kube.node)
        self._pods = Follower(api, "/api/v1/pods", kube.pod)
        self._told = Follower(api, "/api/v1/events", kube.event)
        # What an account may not be allowed to read costs nothing else.
        self._csi = Follower(api, "/apis/storage.k8s.io/v1/csinodes", kube_csi.csi_node)
        self._persistent = Follower(api, "/api/v1/persistentvolumes", kube_csi.volume)
        self._followers = (self._nodes, self._pods, self._told, self._csi, self._persistent)
        self._node, self._patience = site.node, site.settings.timeout / 4
        self._book, self._volumes = Book(NAME, site.node), Volumes(NAME, site.node)
        self._known_drivers: dict[str, Mapping[str, Any]] = {}  # of nodes, by uid
        self._orphans: dict[str, Orphan] = {}  # by uid
        self._known_nodes: dict[str, SchedNode] = {}
        self._known_pods: dict[str, tuple[str, SchedJob | None, CsiPod | None]] = {}  # node, job and driver, by uid
        self._counts = EventCounts(site.node)

    def look(self, now: datetime) -> Sequence[Observation]:
        """What has changed. Raises OSError where the server does not answer."""
        for follower in self._followers:
            follower.heard.wait(self._patience)
        if error := self._nodes.error or self._pods.error or self._told.error:
            raise OSError(error)
        _apply(self._known_nodes, self._nodes.take(), "node")
        pods = self._pods.take()
        lost = [change.object["job"] for change in pods if change.how == "DELETED" and change.object["job"]]
        self._take_pods(pods)
        told = self._told.take()
        jobs = [job for _, job, _ in self._known_pods.values() if job]
        used = Counter[str]()
        for job in jobs:
            if job.running and job.nodes:
                used[job.nodes[0]] += job.gpus or 0
        nodes = [_with_used(node, used[node.name]) for node in self._known_nodes.values()]
        ended = [job for job in lost if job.lost and job.lost_at]
        events = list(self._counts.told(told, {uid: node for uid, (node, _, _) in self._known_pods.items()}, now))
        return [*self._book.nodes(nodes, now), *self._book.jobs([*jobs, *ended], now), *events, *self._of_volumes()]

    def _of_volumes(self) -> Iterator[Reading]:
        _apply(self._known_drivers, self._csi.take(), "named")
        _apply(self._orphans, self._persistent.take(), "orphan")
        pods = [csi for _, _, csi in self._known_pods.values() if csi]
        registered = None if self._csi.error else {one["node"]: one["drivers"] for one in self._known_drivers.values()}
        yield from self._volumes.drivers(registered, pods)
        if not self._persistent.error:
            yield from self._volumes.orphans(self._orphans.values())

    def close(self) -> None:
        """Ends the watches."""
        for follower in self._followers:
            follower.close()

    def _take_pods(self, changes: Sequence[Change]) -> None:
        for change in changes:
            uid = change.object.get("metadata", {}).get("uid", "")
            if change.how == "BEGUN":
                self._known_pods = {}
            elif change.how == "DELETED":
                self._known_pods.pop(uid, None)
            elif uid:
                self._known_pods[uid] = (change.object["node"], change.object["job"], change.object["csi"])


class EventCounts:
    """From Kubernetes' events, which it repeats by counting up and lists again whole, to each occurrence once."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._seen: OrderedDict[str, int] = OrderedDict()

    def told(self, changes: Sequence[Change], nodes: Mapping[str, str], now: datetime) -> Iterator[Event]:
        """What has happened that was not told yet. `nodes` says where pods are, by uid."""
        for change in changes:
            one = change.object.get("told")
            if not isinstance(one, kube.Told) or change.how == "DELETED" or (what := KINDS.get(one.reason)) is None:
                continue
            more = one.count - self._seen.get(one.uid, 0)
            self._seen[one.uid] = max(one.count, self._seen.get(one.uid, 0))
            self._seen.move_to_end(one.uid)
            while len(self._seen) > MOST_EVENTS:
                self._seen.popitem(last=False)
            at = one.at if one.at is not None else now.timestamp()
            if more > 0 and now.timestamp() - at <= OLD:
                yield self._event(what, one, more, at, nodes.get(one.object_uid) or self._node)

    def _event(self, what: EventKind, one: kube.Told, more: int, at: float, node: str) -> Event:
        return Event(
            id=id_of(NAME, one.uid, one.count),
            at=datetime.fromtimestamp(at, UTC),
            kind=what.name,
            layer=what.layer.value,
            severity=what.severity.value,
            node=node,
            code=clean(one.reason),
            message=clean(one.message),
            count=more,
            attrs={"scheduler": NAME, "object": clean(one.name)},
        )


def _apply(known: dict[str, Any], changes: Sequence[Change], key: str) -> None:
    """Brings `known`, objects by uid, up to date."""
    for change in changes:
        uid = change.object.get("metadata", {}).get("uid", "")
        if change.how == "BEGUN":
            known.clear()
        elif change.how == "DELETED":
            known.pop(uid, None)
        elif uid and change.object[key] is not None:
            known[uid] = change.object[key]
        else:
            known.pop(uid, None)


def _with_used(node: SchedNode, used: int) -> SchedNode:
    return SchedNode(node.name, node.ready, node.schedulable, node.gpus, used if node.gpus is not None else None, node.bad)
