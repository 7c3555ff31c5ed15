"""Volumes of Kubernetes, from a kubelet that is a local HTTP server. The answer's layout is that of the kubelet's stats API."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from exporters.collector import Site
from exporters.sources.storage import kubelet
from exporters.sources.storage.kubelet import Door, Volume
from exporters.storage.volumes import VolumeCollector
from pipeline.clock import utcnow
from pipeline.settings import AgentSettings

SUMMARY = (Path(__file__).parents[1] / "fixtures/kubelet/summary.json").read_text()


def test_a_claim_that_two_pods_use_is_one_volume_and_what_is_no_claim_is_none() -> None:
    dataset, checkpoints = kubelet.volumes(SUMMARY)
    assert dataset == Volume("ml", "dataset", 1_000_000, 250_000, 750_000, 1000, 900, healthy=False, pods=2)
    assert checkpoints == Volume("ml", "checkpoints", 5000, 0, 5000, 0, 0, healthy=None, pods=1)


def test_the_kubelet_is_asked_with_the_token_of_the_agent(httpserver: HTTPServer, tmp_path: Path, site: Site) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    httpserver.expect_request("/stats/summary", headers={"Authorization": "Bearer s3cret"}).respond_with_data(SUMMARY)
    settings = AgentSettings(kubelet_url=httpserver.url_for("/"), kubelet_token_file=str(tmp_path / "token"))
    found = list(VolumeCollector(replace(site, settings=settings, kubelet=kubelet.ask)).collect(utcnow()))
    assert [r.identity["claim"] for r in found] == ["ml/dataset", "ml/checkpoints"]
    assert found[0].values["volume.free"] == 250_000 and found[1].values["volume.inodes"] is None


def test_a_machine_without_a_kubelet_has_no_volumes(site: Site) -> None:
    assert list(VolumeCollector(replace(site, settings=AgentSettings(), kubelet=kubelet.ask)).collect(utcnow())) == []


def test_a_kubelet_that_refuses_leads_elsewhere_or_is_away_is_said(httpserver: HTTPServer) -> None:
    httpserver.expect_ordered_request("/stats/summary").respond_with_data("no", status=403)
    httpserver.expect_ordered_request("/stats/summary").respond_with_data("", status=302, headers={"Location": "http://127.0.0.1:1/"})
    door = Door(httpserver.url_for(""), "", "", 5.0)
    for said in ("status 403", "status 302"):
        with pytest.raises(OSError, match=said):
            kubelet.ask(door)
    with pytest.raises(OSError, match="does not answer"):
        kubelet.ask(Door("http://127.0.0.1:1", "", "", 5.0))
    with pytest.raises(OSError):
        kubelet.ask(replace(door, token_file="/nowhere/token"))


def test_a_token_that_no_header_can_carry_is_told_as_an_error(tmp_path: Path) -> None:
    (tmp_path / "token").write_bytes(b"s3cret\xff")
    with pytest.raises(OSError, match="does not answer"):
        kubelet.ask(Door("http://127.0.0.1:1", str(tmp_path / "token"), "", 5.0))


@pytest.mark.parametrize("text", ["", "[]", "nonsense", "7", "[" * 100_000])
def test_what_is_no_summary_is_refused_in_words(text: str) -> None:
    with pytest.raises(OSError):
        kubelet.volumes(text)


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["pods", "volume", "pvcRef", "name", "namespace", "capacityBytes", "inodes"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(values)
def test_any_json_gives_volumes_or_is_refused_in_words(told: Any) -> None:
    try:
        found = kubelet.volumes(json.dumps({"pods": told} if not isinstance(told, dict) else told))
    except OSError:
        return
    assert all(v.size is None or 0 <= v.size < 1 << 63 for v in found)
