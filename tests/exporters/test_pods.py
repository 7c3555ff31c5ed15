"""Which pod and which container a process is in, as each driver of the kubelet and each runtime names their control groups."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sources import cgroups
from exporters.sources.cgroups import Pod

UID = "8d1f6a0b-3c2e-4f57-9a81-0b1c2d3e4f50"
LOW = UID.replace("-", "_")
ID = "c0ffee00" * 8
OTHER = "deadbeef" * 8
STATIC = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"  # the kubelet gives a pod from a file a hash for a UID


@pytest.mark.parametrize(
    "text",
    [
        # cgroupfs
        f"0::/kubepods/burstable/pod{UID}/{ID}\n",
        f"0::/kubepods/pod{UID}/{ID}\n",  # guaranteed
        f"12:devices:/kubepods/besteffort/pod{UID}/{ID}\n4:memory:/kubepods/besteffort/pod{UID}/{ID}\n1:name=systemd:/kubepods\n",
        f"0::/kubepods/burstable/pod{UID}/crio-{ID}\n",
        f"4:memory:/kubelet/kubepods/pod{UID}/{ID}\n",  # below a root that the kubelet was given
        # systemd
        f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{LOW}.slice/cri-containerd-{ID}.scope\n",
        f"0::/kubepods.slice/kubepods-pod{LOW}.slice/cri-containerd-{ID}.scope\n",
        f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{LOW}.slice/crio-{ID}.scope/container\n",
        f"9:memory:/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{LOW}.slice/docker-{ID}.scope\n0::/system.slice\n",
        f"0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{LOW}.slice/cri-containerd-{ID}.scope\n",
        f"4:memory:/system.slice/containerd.service/kubepods-burstable-pod{LOW}.slice:cri-containerd:{ID}\n",
        # seen from a container with a view of its own
        f"0::/../../kubepods-burstable-pod{LOW}.slice/cri-containerd-{ID}.scope\n",
        f"0::/../../pod{UID}/{ID}\n",
        # with more below it
        f"0::/kubepods/burstable/pod{UID}/{ID}/docker/{OTHER}\n",
        f"0::/kubepods/pod{UID}/{ID}/kubepods/pod{STATIC}/{OTHER}\n",
        f"3:cpu:/\n2:memory:/system.slice\n1:name=systemd:/kubepods/pod{UID}/{ID}\n",
    ],
)
def test_the_pod_and_the_container_are_known_by_each_driver_and_runtime(text: str) -> None:
    assert cgroups.pod(text) == Pod(UID, ID)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"0::/kubepods/burstable/pod{STATIC}/{ID}\n", Pod(STATIC, ID)),
        (f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{STATIC}.slice/crio-{ID}.scope\n", Pod(STATIC, ID)),
        (f"0::/kubepods/burstable/pod{UID}\n", Pod(UID, "")),
        (f"0::/kubepods.slice/kubepods-pod{LOW}.slice/crio-conmon-{ID}.scope\n", Pod(UID, "")),  # the container's guard, not in it
    ],
)
def test_a_static_pod_and_what_is_in_a_pod_and_in_no_container_are_told_as_they_are(text: str, expected: Pod) -> None:
    assert cgroups.pod(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0::/\n",
        "0::/slurm/uid_1000/job_7/step_0\n",
        "0::/user.slice/user-1000.slice/session-3.scope\n",
        f"0::/system.slice/docker-{ID}.scope\n",
        f"4:memory:/docker/{ID}\n",
        f"0::/machine.slice/machine-libpod_pod_{ID}.slice/libpod-{OTHER}.scope\n",
        "0::/kubepods.slice\n",
        "0::/kubepods/burstable/podcast\n",
        f"0::/kubepods/burstable/pod{UID[:-1]}/{ID}\n",
        f"pod{UID}/{ID}\n",
    ],
)
def test_what_is_in_no_pod_has_none(text: str) -> None:
    assert cgroups.pod(text) is None


FOLDERS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["kubepods", f"pod{UID}", f"kubepods-pod{LOW}.slice", f"docker-{ID}.scope", ID, "..", ":", "\udcff"]),
)


@given(st.one_of(st.text(), st.lists(FOLDERS).map(lambda folders: "0::/" + "/".join(folders))))
def test_any_text_gives_a_pod_that_it_holds_or_none(text: str) -> None:
    found = cgroups.pod(text)
    if found is not None:
        assert re.fullmatch("[0-9a-f-]{32,36}", found.uid) and found.uid in text.replace("_", "-")
        assert found.container == "" or (len(found.container) == 64 and found.container in text)


def test_a_process_that_is_gone_has_no_pod_and_one_that_is_there_has_its_own(tmp_path: Path) -> None:
    assert cgroups.pod_of(tmp_path, 7) is None
    (tmp_path / "7").mkdir()
    (tmp_path / "7/cgroup").write_bytes(b"0::/\xff\xfe\n1:x:/kubepods/pod" + f"{UID}/{ID}\n".encode())
    assert cgroups.pod_of(tmp_path, 7) == Pod(UID, ID)
