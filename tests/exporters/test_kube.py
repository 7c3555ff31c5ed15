"""Kubernetes, against a server that speaks its watch protocol: resume, 410, repeated events, and what pods and nodes say."""

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Reading, Site
from exporters.scheduler.kube import MOST_EVENTS, EventCounts, KubeWatch
from exporters.scheduler.kube_volumes import Volumes
from exporters.sources.scheduler import kube, kube_api, kube_csi
from exporters.sources.scheduler.kube_api import Api, Change, Follower
from exporters.sources.scheduler.kube_csi import CsiPod
from pipeline.catalog.metrics import CSI_DRIVER
from pipeline.records import Event
from pipeline.settings import AgentSettings, KubernetesSettings
from tests.fakes.kubernetes import Cluster, served

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
REGISTRAR = "--kubelet-registration-path=/var/lib/kubelet/plugins/lustre.csi.example.com/csi.sock"
LIMIT = 10.0  # seconds that a test waits for what must come


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def url(cluster: Cluster) -> Iterator[str]:
    with served(cluster) as address:
        yield address


@pytest.fixture
def token(tmp_path: Path) -> str:
    (tmp_path / "token").write_text("secret\n")
    return str(tmp_path / "token")


@pytest.fixture
def follower(url: str, token: str, cluster: Cluster) -> Iterator[Follower]:
    one = Follower(Api(url, token, "", 5.0), "/api/v1/nodes", lambda told: told)
    yield one
    one.close()
    cluster.end_watches()


def pod(uid: str, **more: Any) -> dict[str, Any]:
    spec = {"nodeName": "GPU-1", "containers": [{"resources": {"limits": {"nvidia.com/gpu": "8"}}}], **more.pop("spec", {})}
    meta = {"uid": uid, "namespace": "train", "name": f"pod-{uid}", "labels": {"surefoot.run": "run1"}, **more.pop("metadata", {})}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Running", **more}}


def node(name: str, ready: str = "True", **spec: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "reason": "KubeletReady"}, {"type": "DiskPressure", "status": "False"}]
    return {
        "metadata": {"uid": f"u-{name}", "name": name},
        "spec": spec,
        "status": {"conditions": conditions, "allocatable": {"nvidia.com/gpu": "8"}},
    }


def wait_for(what: Any) -> Any:
    until = threading.Event()
    for _ in range(int(LIMIT / 0.01)):
        if found := what():
            return found
        until.wait(0.01)
    raise AssertionError("it did not come in time")


def taken(follower: Follower, count: int) -> list[tuple[str, str]]:
    """The next `count` changes, as how and name."""
    found: list[Change] = []

    def enough() -> bool:
        found.extend(follower.take())
        return len(found) >= count

    wait_for(enough)
    return [(change.how, change.object.get("metadata", {}).get("name", "")) for change in found]


# --- the protocol ------------------------------------------------------------------------------


def test_a_list_comes_whole_and_then_every_change_in_its_order(cluster: Cluster, follower: Follower) -> None:
    assert taken(follower, 1) == [("BEGUN", "")]
    cluster.put("/api/v1/nodes", node("a"))
    cluster.put("/api/v1/nodes", node("a", "False"))
    cluster.put("/api/v1/nodes", node("a"), "DELETED")
    assert taken(follower, 3) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]


def test_a_long_list_is_asked_for_in_parts(cluster: Cluster, url: str, token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(kube_api.PAGE + 1):
        cluster.put("/api/v1/nodes", node(f"n{n}"))
    one = Follower(Api(url, token, "", 5.0), "/api/v1/nodes", lambda told: told)
    assert len(taken(one, kube_api.PAGE + 2)) == kube_api.PAGE + 2 and cluster.lists("/api/v1/nodes") == 2
    one.close()


def test_a_watch_that_ends_goes_on_where_it_stood_without_a_new_list(cluster: Cluster, follower: Follower) -> None:
    cluster.put("/api/v1/nodes", node("a"))
    wait_for(lambda: cluster.watches("/api/v1/nodes") == 1)
    follower.take()
    cluster.end_watches()
    wait_for(lambda: cluster.watches("/api/v1/nodes") >= 2)
    cluster.put("/api/v1/nodes", node("b"))
    assert ("ADDED", "b") in taken(follower, 1)
    assert cluster.lists("/api/v1/nodes") == 1


def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_circle(cluster: Cluster, follower: Follower) -> None:
    began = time.monotonic()
    for n in range(1, 4):
        wait_for(lambda n=n: cluster.watches("/api/v1/nodes") >= n)
        cluster.end_watches()
    assert time.monotonic() - began >= 1.0, "half a second after each of the first two"


def test_one_that_stood_too_far_back_begins_anew_with_a_list(cluster: Cluster, follower: Follower) -> None:
    cluster.put("/api/v1/nodes", node("a"))
    wait_for(lambda: cluster.watches("/api/v1/nodes") == 1)
    follower.take()
    cluster.forget()
    assert taken(follower, 2) == [("BEGUN", ""), ("LISTED", "a")]
    assert cluster.lists("/api/v1/nodes") == 2 and follower.error == ""


def test_a_token_that_is_refused_is_told_and_a_new_one_is_taken(cluster: Cluster, url: str, token: str) -> None:
    Path(token).write_text("old")
    one = Follower(Api(url, token, "", 5.0), "/api/v1/nodes", lambda told: told)
    wait_for(lambda: "status 401" in one.error)
    Path(token).write_text("secret")
    wait_for(lambda: one.error == "")
    one.close()


# --- repeated events (C68) ---------------------------------------------------------------------


def attach(count: int | None, uid: str = "e1", at: datetime = AT, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "train", "name": "pod-1", "uid": "1"}
    stamp = at.isoformat().replace("+00:00", "Z")
    usual = {"count": count, "lastTimestamp": stamp, "eventTime": None, "reason": "FailedAttachVolume", "message": "Multi-Attach error"}
    return {"metadata": {"uid": uid, "name": uid}, "involvedObject": about, **usual, **more}


def changes(how: str, *events: dict[str, Any]) -> list[Change]:
    return [Change(how, kube.event(one)) for one in events]


def test_counts_that_go_up_and_lists_that_come_again_are_ten_occurrences_and_no_more() -> None:
    counts, told = EventCounts("watcher"), []
    for batch in (
        changes("ADDED", attach(1)),
        changes("MODIFIED", attach(4)),
        changes("MODIFIED", attach(10)),
        *[[Change("BEGUN", {}), *changes("LISTED", attach(10))] for _ in range(3)],
        changes("DELETED", attach(10)),
    ):
        told += list(counts.told(batch, {"1": "gpu-1"}, AT))
    assert [e.count for e in told] == [1, 3, 6] and len({e.id for e in told}) == 3
    assert {(e.at, e.node, e.attrs["object"], e.code) for e in told} == {(AT, "gpu-1", "train/pod-1", "FailedAttachVolume")}


def test_the_newer_form_counts_in_its_series_and_one_without_any_time_is_of_now() -> None:
    series = attach(None, lastTimestamp=None, series={"count": 7, "lastObservedTime": "2026-11-30T11:59:58.123456Z"})
    (told,) = EventCounts("w").told(changes("ADDED", series), {}, AT)
    assert (told.count, told.at, told.node) == (7, AT - timedelta(seconds=1.876544), "w")
    (told,) = EventCounts("w").told(changes("ADDED", attach(1, lastTimestamp=None)), {}, AT)
    assert told.at == AT


def test_old_events_of_the_first_list_are_not_ours_and_memory_is_bounded() -> None:
    counts = EventCounts("w")
    assert list(counts.told(changes("LISTED", attach(3, at=AT - timedelta(hours=1))), {}, AT)) == []
    (told,) = counts.told(changes("MODIFIED", attach(4)), {}, AT)
    assert told.count == 1
    for n in range(MOST_EVENTS + 10):
        list(counts.told(changes("ADDED", attach(1, uid=str(n))), {}, AT))
    assert len(counts._seen) == MOST_EVENTS


# --- what it says ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "ready", "schedulable", "bad"),
    [
        (node("a"), True, True, {}),
        (node("a", "False"), False, False, {"Ready": "KubeletReady"}),
        (node("a", "Unknown"), False, False, {"Ready": "KubeletReady"}),
        (node("a", unschedulable=True), True, False, {}),
        ({"metadata": {"name": "a"}, "status": {}}, None, None, {}),
    ],
)
def test_a_node_is_unfit_where_it_is_not_ready_and_nothing_said_is_no_verdict(
    told: dict[str, Any], ready: bool | None, schedulable: bool | None, bad: dict[str, str]
) -> None:
    found = kube.node(told)["node"]
    assert (found.ready, found.schedulable, dict(found.bad)) == (ready, schedulable, bad)


def test_a_pod_without_gpus_and_run_is_nobodys_job() -> None:
    assert kube.pod({"metadata": {"uid": "1", "name": "web"}, "spec": {"containers": [{}]}, "status": {"phase": "Running"}})["job"] is None


def test_a_pods_run_is_its_label_else_what_its_container_is_told() -> None:
    unlabelled = pod("1", metadata={"labels": {}}, spec={"containers": [{"env": [{"name": "SUREFOOT_RUN_ID", "value": "run2"}]}]})
    assert [kube.pod(one)["job"].run for one in (pod("1"), unlabelled)] == ["run1", "run2"]


def test_a_pod_that_fits_nowhere_waits_since_the_scheduler_said_so() -> None:
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": "2026-11-30T11:58:00Z"}
    job = kube.pod(pod("1", phase="Pending", conditions=[stuck], spec={"nodeName": ""}))["job"]
    assert (job.running, job.nodes, job.unplaced_since) == (False, (), AT.timestamp() - 120)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_any_object_is_made_small_or_made_nothing_of(value: Any) -> None:
    whole = {
        "metadata": value,
        "spec": value,
        "status": value,
        "series": value,
        "involvedObject": value,
        "count": value,
        "lastTimestamp": value,
    }
    inner = {
        "metadata": {"uid": value, "name": value, "labels": value},
        "spec": {
            "containers": [
                value,
                {
                    "resources": {"limits": {"nvidia.com/gpu": value}},
                    "env": [value, {"name": value}],
                    "args": [value, REGISTRAR],
                    "image": value,
                },
            ],
            "nodeName": "n",
            "drivers": [value, {"name": value, "allocatable": value}],
            "capacity": {"storage": value},
            "claimRef": value,
        },
        "status": {
            "phase": "Failed",
            "containerStatuses": [value, {"ready": value, "restartCount": value}],
            "conditions": [value, {"type": value, "status": value}],
            "allocatable": {"nvidia.com/gpu": value},
        },
    }
    for told in (whole, inner):
        for small in (kube.node, kube.pod, kube.event, kube_csi.csi_node, kube_csi.volume):
            assert "metadata" in small(told)


def looked(watch: KubeWatch) -> tuple[list[Reading], list[Event]]:
    found = watch.look(AT)
    return [one for one in found if isinstance(one, Reading)], [one for one in found if isinstance(one, Event)]


def test_an_evicted_pod_a_volume_and_a_node_that_goes_are_told_as_they_happen(cluster: Cluster, url: str, token: str) -> None:
    cluster.put("/api/v1/nodes", node("GPU-1"))
    cluster.put("/api/v1/pods", pod("1"))
    settings = AgentSettings(schedulers=("kubernetes",), kubernetes=KubernetesSettings(url=url, token_file=token, ca_file=""))
    watch = KubeWatch(Site("watcher", settings=settings))
    readings, events = looked(watch)
    assert events == []
    values = {r.family.name: (r.identity, r.values) for r in readings}
    assert values["sched_node"][0] == {"node": "gpu-1", "scheduler": "kubernetes"}
    assert values["sched_node"][1] == {"sched_node.ready": 1, "sched_node.schedulable": 1, "sched_node.gpus": 8, "sched_node.gpus_used": 8}
    assert values["sched_job"][0]["job"] == "train/pod-1"

    since = "2026-11-30T11:59:59Z"
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "PreemptionByScheduler",
        "message": "preempted",
        "lastTransitionTime": since,
    }
    cluster.put("/api/v1/pods", pod("1", phase="Failed", conditions=[target]))
    cluster.put("/api/v1/pods", pod("1", phase="Failed", conditions=[target]), "DELETED")
    cluster.put("/api/v1/events", attach(2))
    cluster.put("/api/v1/nodes", node("GPU-1", "Unknown"))
    told: list[Event] = []
    wait_for(lambda: told.extend(looked(watch)[1]) or len(told) >= 3)
    found = {e.kind: e for e in told}
    lost = found["place_lost"]
    assert (lost.code, lost.node, lost.run, lost.at, lost.attrs["job"]) == (
        "preempted",
        "gpu-1",
        "run1",
        AT - timedelta(seconds=1),
        "train/pod-1",
    )
    assert (found["volume_attach_failed"].count, found["node_condition"].code) == (2, "Ready")
    watch.close()


def test_a_server_that_is_not_there_is_an_error_and_not_a_cluster_without_nodes() -> None:
    settings = AgentSettings(timeout=1.0, kubernetes=KubernetesSettings(url="http://127.0.0.1:1", token_file="", ca_file=""))
    watch = KubeWatch(Site("watcher", settings=settings))
    with pytest.raises(OSError, match=r"API server at .* does not answer: Connection refused"):
        watch.look(AT)
    watch.close()


# --- volumes ------------------------------------------------------------------------------------


def drivers(*found: Reading) -> dict[tuple[str, str], tuple[Any, ...]]:
    return {(r.identity["node"], r.identity["driver"]): tuple(r.values.values())[:3] for r in found}


def test_a_driver_is_missed_where_it_was_as_long_as_other_nodes_have_it_and_the_node_is_there() -> None:
    volumes = Volumes("kubernetes", "watcher")
    both = {"a": {"nfs": 5, "lustre": None}, "b": {"nfs": None}}
    assert drivers(*volumes.drivers(both, ())) == {
        ("a", "nfs"): (1, None, None),
        ("a", "lustre"): (1, None, None),
        ("b", "nfs"): (1, None, None),
    }
    assert drivers(*volumes.drivers({"a": {"lustre": None}, "b": {"nfs": None}}, ()))["a", "nfs"] == (0, None, None)
    gone_everywhere = volumes.drivers({"a": {"lustre": None}, "b": {}}, ())
    assert drivers(*gone_everywhere) == {("a", "lustre"): (1, None, None)}, "what was removed from all nodes is missed on none"
    assert drivers(*volumes.drivers({"b": {"lustre": 1}}, ())) == {("b", "lustre"): (1, None, None)}, "a node that is gone misses nothing"


def test_a_pod_says_that_its_driver_should_be_there_and_how_it_fares() -> None:
    pods = [CsiPod("nfs", "a", False, 6, "v1.2"), CsiPod("nfs", "b", True, 0, "")]
    found = [*Volumes("kubernetes", "w").drivers({"a": {}, "b": {"nfs": 3}}, pods)]
    assert drivers(*found) == {("a", "nfs"): (0, 0, 6), ("b", "nfs"): (1, 1, 0)}
    assert [r.attributes for r in found] == [{"version": "v1.2"}, {}]
    unknown = Volumes("kubernetes", "w").drivers(None, pods)
    assert drivers(*unknown) == {("a", "nfs"): (None, 0, 6), ("b", "nfs"): (None, 1, 0)}, "who may not ask does not know"


@pytest.mark.parametrize(
    ("quantity", "bytes_"), [("10Gi", 10 * 2**30), ("500M", 500_000_000), ("7", 7), ("1Ti", 2**40), ("1.5Gi", None), ("", None), (5, None)]
)
def test_sizes_are_bytes(quantity: Any, bytes_: int | None) -> None:
    assert kube_csi.size(quantity) == bytes_


def test_an_account_that_may_not_see_drivers_still_sees_nodes_and_one_that_goes_is_missed(cluster: Cluster, url: str, token: str) -> None:
    where = "/apis/storage.k8s.io/v1/csinodes"
    for name in ("a", "b"):
        cluster.put("/api/v1/nodes", node(name))
        cluster.put(where, {"metadata": {"uid": name, "name": name}, "spec": {"drivers": [{"name": "nfs"}]}})
    cluster.forbidden.add("/api/v1/persistentvolumes")
    settings = AgentSettings(schedulers=("kubernetes",), kubernetes=KubernetesSettings(url=url, token_file=token, ca_file=""))
    watch = KubeWatch(Site("watcher", settings=settings))
    families = [r.family.name for r in looked(watch)[0]]
    assert families == ["sched_node", "sched_node", "csi_driver", "csi_driver"]
    cluster.put(where, {"metadata": {"uid": "a", "name": "a"}, "spec": {"drivers": None}})
    wait_for(
        lambda: (
            {r.identity["node"]: r.values["csi_driver.registered"] for r in looked(watch)[0] if r.family is CSI_DRIVER} == {"a": 0, "b": 1}
        )
    )
    watch.close()


def test_a_driver_whose_socket_stands_in_a_variable_is_known_and_its_version_is_no_sidecars_and_no_digest() -> None:
    """As the manifests of EBS, EFS, vSphere, Trident and others have it."""
    registrar = {
        "image": "public.ecr.aws/eks-distro/kubernetes-csi/node-driver-registrar:v2.1.0-eks-1-18-13",
        "args": ["--csi-address=$(ADDRESS)", "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)", "--v=5"],
        "env": [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "DRIVER_REG_SOCK_PATH", "value": "/var/lib/kubelet/plugins/efs.csi.aws.com/csi.sock"},
        ],
    }
    for image, version in (("amazon/aws-efs-csi-driver:v2.0.1", "v2.0.1"), ("amazon/driver@sha256:" + "0a" * 32, "")):
        told = {"spec": {"nodeName": "A", "containers": [registrar, {"image": image}]}, "status": {"containerStatuses": [{"ready": True}]}}
        assert kube_csi.csi_pod(told) == CsiPod("efs.csi.aws.com", "a", ready=True, restarts=0, version=version)
    assert kube_csi.csi_pod({"spec": {"nodeName": "a", "containers": [{**registrar, "env": []}]}}) is None
