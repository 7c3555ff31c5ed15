"""What `deploy/` places is read by the programs that will read it, or by their grammar."""

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from pipeline.settings import Settings, all_keys

ROOT = Path(__file__).parents[2]
UNIT = ROOT / "deploy/systemd/surefoot-agent.service"
COMPOSE = ROOT / "deploy/compose/compose.yaml"


def unit() -> configparser.ConfigParser:
    class Repeats(dict[str, str]):
        """systemd allows a key more than once; the values are joined, one a line."""

        def __setitem__(self, key: str, value: str) -> None:
            both = [*self[key], *value] if key in self and isinstance(value, list) else value
            super().__setitem__(key, both)

    parser = configparser.ConfigParser(strict=False, interpolation=None, dict_type=Repeats)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    parser.read(UNIT)
    return parser


def test_the_agents_unit_starts_the_agent_and_starts_it_again_when_it_dies() -> None:
    service = unit()["Service"]
    assert service["ExecStart"].split()[-1] == "agent"
    assert service["Restart"] == "always"


def test_the_agents_unit_makes_the_ring_folder_writable_for_every_trainer_with_the_sticky_bit() -> None:
    service = unit()["Service"]
    assert (service["RuntimeDirectory"], service["RuntimeDirectoryMode"]) == ("surefoot", "1777")
    assert "SUREFOOT_RING_DIR=/run/surefoot" in service["Environment"]


def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if not verify:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/surefoot/bin/surefoot", "/bin/true"))
    done = subprocess.run([verify, "verify", "--man=no", str(copy)], capture_output=True, text=True, check=False)
    assert UNIT.name not in done.stderr


def test_every_setting_in_the_compose_file_exists() -> None:
    known = {f"SUREFOOT_{key.upper().replace('.', '__')}" for key in all_keys()}
    compose = yaml.safe_load(COMPOSE.read_text())
    for name, service in compose["services"].items():
        used = {k for k in service.get("environment", {}) if k.startswith("SUREFOOT_")}
        assert used <= known, (name, used - known)


def test_every_part_in_the_compose_file_is_a_command_of_ours() -> None:
    from surefoot.cli import cli

    compose = yaml.safe_load(COMPOSE.read_text())
    ours = [s["command"] for s in compose["services"].values() if s.get("image", "").startswith("surefoot:")]
    assert sorted(ours) == ["console", "ingest", "jobs", "migrate"]
    assert set(ours) <= set(cli.commands)


def test_docker_accepts_the_compose_file() -> None:
    if not shutil.which("docker") or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("docker compose is not installed")
    env = {"SUREFOOT_STORE__PASSWORD": "x", "SUREFOOT_INGEST__TOKEN": "y", "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": "/tmp"}
    done = subprocess.run(["docker", "compose", "-f", str(COMPOSE), "config", "-q"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_settings_of_the_drill_and_the_compose_file_can_be_loaded_together() -> None:
    assert {"store", "ingest", "console"} <= set(Settings.model_fields)
