"""Several nodes on one machine: where it gives no networks, one line says so."""

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import NotPossible
from surefoot.drill.hosts import Host


@pytest.fixture
def host() -> Host:
    """A node whose holder is some process."""
    with subprocess.Popen([sys.executable, "-c", ""]) as holder:
        return Host("node-b", 1, holder)


def test_an_ip_that_fails_is_told_with_its_words_and_what_to_do(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ip"
    program.write_text('#!/bin/sh\necho "RTNETLINK answers: Operation not permitted" >&2\nexit 2\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotPossible) as told:
        host.lose()
    assert str(told.value) == (
        "several nodes on one machine need networks of their own (`ip link set node1 down` ended with 2: "
        "RTNETLINK answers: Operation not permitted): run the drill as root, with iproute2"
    )


def test_an_ip_that_is_not_there_is_told_too(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotPossible, match=r"\(ip: No such file or directory\): run the drill as root, with iproute2"):
        host.lose()
