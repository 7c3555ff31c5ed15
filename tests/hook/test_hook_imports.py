"""The hook is a guest in the training process: what it loads, and beside what."""

import sys
from pathlib import Path
from typing import Any

OURS = ("pipeline", "alerts", "slo", "dashboard", "exporters")


def test_importing_surefoot_loads_the_standard_library_and_itself_only(rings: Any, tmp_path: Path) -> None:
    script = """
    import sys
    before = set(sys.modules)
    import surefoot
    surefoot.StepMonitor()
    print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}))
    """
    loaded = set(rings.run(script, cwd=tmp_path).stdout.split())
    assert "surefoot" in loaded
    assert loaded - {"surefoot"} <= sys.stdlib_module_names


def test_a_trainer_beside_packages_named_like_ours_trains_on(rings: Any, tmp_path: Path) -> None:
    import subprocess

    for name in OURS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise RuntimeError('the wrong {name} was imported')\n")
    trainer = tmp_path / "train.py"
    trainer.write_text(
        "from surefoot import StepMonitor\n"
        "monitor = StepMonitor()\n"
        "with monitor.step(1), monitor.phase('forward'):\n"
        "    pass\n"
        "print('trained', monitor.active)\n"
    )
    command = [sys.executable, str(trainer)]
    done = subprocess.run(command, env=rings.environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "trained True\n", done.stderr
    assert [r["step"] for r in rings.records()] == [1]
