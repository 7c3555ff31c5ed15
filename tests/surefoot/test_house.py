"""The house itself: what import-linter cannot say."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("alerts", "dashboard", "exporters", "pipeline", "slo", "surefoot")
OF_PIPELINE_FOR_EXPORTERS = {"catalog", "records", "errors", "clock", "settings", "secrets", "sizes", "hostlist", "ownership"}


def sources() -> Iterator[Path]:
    for room in ROOMS:
        yield from sorted((ROOT / room).rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ([f"pipeline.{a.name}" for a in node.names] if node.module == "pipeline" else [node.module])


def test_the_agent_and_the_launcher_import_of_pipeline_only_what_is_light() -> None:
    used = {m.split(".")[1] for path in (ROOT / "exporters").rglob("*.py") for m in imports(path) if m.startswith("pipeline.")}
    assert used <= OF_PIPELINE_FOR_EXPORTERS


def test_only_jobs_modules_import_the_scheduler() -> None:
    users = {path.name for path in sources() if any(m.startswith("apscheduler") for m in imports(path))}
    assert users == {"jobs.py"}


def test_the_stores_sql_stands_only_in_pipeline() -> None:
    spoken = ("SELECT ", "INSERT INTO", "ALTER TABLE", "CREATE TABLE")
    for path in sources():
        if path.is_relative_to(ROOT / "pipeline") or path.name.startswith("outbox"):  # a SQLite file of its own
            continue
        texts = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        assert not [t for t in texts if t.lstrip().startswith(spoken)], path


def test_every_read_model_has_its_sql_and_every_sql_its_read_model() -> None:
    folder = ROOT / "pipeline/queries"
    assert {p.stem for p in folder.glob("*.sql")} == {p.stem for p in folder.glob("*.py")} - {"__init__"}


def test_all_packages_come_from_one_folder_whatever_the_current_one_is(tmp_path: Path) -> None:
    script = f"import {', '.join(ROOMS)}; print(*(m.__path__[0] for m in ({', '.join(ROOMS)})))"
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert {Path(p).parent for p in done.stdout.split()} == {ROOT}


@pytest.mark.parametrize("words", [("--version",), ("agent", "--once"), ("run", "--", "true")], ids=" ".join)
def test_packages_of_the_same_names_on_the_python_path_do_not_get_in_the_way(tmp_path: Path, words: tuple[str, ...]) -> None:
    for room in ROOMS[:-1]:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise ImportError('not ours')")
    env = {"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SUREFOOT_STATE_DIR": str(tmp_path / "s")}
    env |= {"SUREFOOT_RING_DIR": str(tmp_path / "r"), "SUREFOOT_INGEST__PORT": "1", "SUREFOOT_JOB__CONTROL_TIMEOUT": "0.2"}
    done = subprocess.run(
        [sys.executable, "-m", "surefoot", *words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_no_module_lies_where_streamlit_or_pytest_would_stumble_over_it() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
    assert not list(ROOT.glob("*.py"))
    assert not {p.stem for p in (ROOT / "dashboard").glob("*.py")} & set(ROOMS)


@pytest.mark.parametrize("path", list(sources()), ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_short_and_functions_shorter(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= 400
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 60, node.name


def test_nothing_names_a_place_that_exists_only_here() -> None:
    tracked = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in tracked.stdout.split():
        path = ROOT / name
        if path.suffix in {".py", ".md", ".toml", ".yaml", ".txt", ".sh", ".sql", ".service"} and path.is_file():
            assert str(ROOT) not in path.read_text(errors="replace"), name
