"""The install that a GPU node gets: no extras, and nothing heavy in it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = {"pandas", "pyarrow", "streamlit", "chdb", "torch", "numpy", "clickhouse_connect"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that holds Surefoot without extras."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, timeout=120)
    install = [folder / "bin/pip", "install", "-q", "-c", ROOT / "constraints.txt", str(ROOT)]
    subprocess.run(install, check=True, timeout=600)
    return folder / "bin/python"


@pytest.fixture(autouse=True)
def installed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is installed is tried, not the sources that a path of ours may lead to."""
    monkeypatch.delenv("PYTHONPATH", raising=False)


def loaded_by(python: Path, statement: str, cwd: Path) -> set[str]:
    script = f"import sys\n{statement}\nprint('modules', *{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run([python, "-c", script], cwd=cwd, capture_output=True, text=True, check=True, timeout=60)
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_the_hook_is_there_and_loads_the_standard_library_alone(python: Path, tmp_path: Path) -> None:
    loaded = loaded_by(python, "from surefoot import StepMonitor; StepMonitor().close()", tmp_path)
    assert loaded - set(sys.stdlib_module_names) - {"__main__", "sitecustomize", "_distutils_hack"} == {"surefoot"}


def test_the_agent_reads_once_without_anything_heavy(python: Path, tmp_path: Path) -> None:
    run = f"import os; os.environ['SUREFOOT_STATE_DIR'] = {str(tmp_path)!r}\n"
    run += "from surefoot.cli import cli; cli(['agent', '--once'], standalone_mode=False)"
    loaded = loaded_by(python, run, tmp_path)
    assert "exporters" in loaded
    assert not HEAVY & loaded


def test_nothing_heavy_is_installed(python: Path, tmp_path: Path) -> None:
    freeze = subprocess.run([python, "-m", "pip", "freeze"], capture_output=True, text=True, check=True, timeout=60)
    installed = {line.split("==")[0].split(" @")[0].lower().replace("-", "_") for line in freeze.stdout.splitlines()}
    assert "surefoot" in installed
    assert not HEAVY & installed


def test_a_command_that_needs_an_extra_says_which(python: Path, tmp_path: Path) -> None:
    done = subprocess.run([python, "-m", "surefoot", "ingest"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.strip() == "surefoot: this command needs more than the base install: in Surefoot's clone, pip install '.[server]'"


def test_the_runbooks_come_along(python: Path, tmp_path: Path) -> None:
    where = "from importlib.util import find_spec as f; print(*f('dashboard').submodule_search_locations)"
    folder = subprocess.run([python, "-c", where], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    written = {page.name for page in (ROOT / "docs/runbooks").glob("*.md")}
    assert {page.name for page in (Path(folder) / "runbooks").iterdir()} == written
