"""Quotas, asked of a C library that answers as a kernel with them does: the kernel of a test machine seldom has them."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from exporters.collector import Site
from exporters.sources.storage import mounts
from exporters.sources.storage.mounts import ChildProbes
from exporters.sources.storage.probes import Quota, Quotas, ThreadProbes, quotas
from exporters.storage.quotas import QuotaCollector
from pipeline.settings import AgentSettings

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
SOURCE = Path(__file__).parents[1] / "fakes/quota.c"
USER, GROUP, PROJECT = range(3)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("cc is not here (Debian: gcc)")
    made = tmp_path_factory.mktemp("quota") / "quota.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", made, SOURCE], check=True)
    return made


Ask = Callable[..., tuple[Quota, ...]]


@pytest.fixture
def ask(library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """Asks a folder of user 1000 and group 100 in the child process of the agent, which finds the fake kernel."""
    folder = tmp_path / "ckpt"
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 1000, 100)
    probes: list[ChildProbes[Quotas]] = []

    def asked(**told: str) -> tuple[Quota, ...]:
        for name, value in {"LD_PRELOAD": str(library), **told}.items():
            monkeypatch.setenv(name, value)
        made = mounts.quotas()
        probes.append(made)
        made.ask(str(folder))
        (answer,) = made.answers(30.0)
        assert answer.error == "" and answer.found is not None
        return answer.found.found

    yield asked
    for one in probes:
        one.close()


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")


@root
def test_each_quota_with_a_limit_is_told_in_bytes_and_files(ask: Ask) -> None:
    told = f"{USER} 1000 2048 1024 1500000 0 0 12;{GROUP} 100 0 0 7 0 0 7;{PROJECT} 7 0 4096 3000000 500 400 450"
    assert ask(FAKE_QUOTA=told, FAKE_PROJECT="7") == (
        Quota("user 1000", 1_500_000, 2 * 1024 * 1024, 12, None),  # the hard limit; the group has none
        Quota("project 7", 3_000_000, 4 * 1024 * 1024, 450, 500),  # the soft limit where that is all
    )


@root
def test_a_folder_of_ceph_has_a_quota_of_its_own(ask: Ask) -> None:
    assert ask(FAKE_CEPH_BYTES="1000000", FAKE_CEPH_USED="999999") == (Quota("folder", 999_999, 1_000_000, 0, None),)


@root
def test_where_no_quota_is_kept_there_is_none(ask: Ask) -> None:
    assert ask() == ()


def test_this_machines_own_kernel_can_be_asked(tmp_path: Path) -> None:
    assert all(one.used >= 0 and one.files >= 0 for one in quotas(str(tmp_path)).found)


def test_a_folder_that_is_not_there_or_hangs_has_no_readings() -> None:
    def told(folder: str) -> Quotas:
        if folder == "/gone":
            raise FileNotFoundError(2, "No such file or directory", folder)
        return Quotas((Quota("user 1", 5, 10, 1, None),))

    settings = AgentSettings(probe_paths=(Path("/gone"), Path("/data")))
    collector = QuotaCollector(replace(Site("n", settings=settings), quotas=lambda: ThreadProbes(told), probe_timeout=30.0))
    (reading,) = collector.collect(AT)
    assert reading.identity == {"node": "n", "folder": "/data", "of": "user 1"}
    assert reading.values == {"quota.used": 5, "quota.limit": 10, "quota.files": 1, "quota.files.limit": None}
    collector.close()


def test_without_folders_nothing_is_asked_and_it_says_so() -> None:
    collector = QuotaCollector(Site("n", settings=AgentSettings()))
    assert list(collector.collect(AT)) == [] and collector.absent() == "agent.probe_paths names no folder"
    collector.close()
