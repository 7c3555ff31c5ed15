"""What the README tells people to type works as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

from pipeline.settings import Settings

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def test_the_five_lines_run_in_a_real_training_without_a_warning(tmp_path: Path) -> None:
    (lines,) = blocks("python")
    around = (
        "import os, torch\n"
        "start, steps, rank, folder = 0, 1000, 0, os.getcwd()\n"
        "net, batch = torch.nn.Linear(4, 1), torch.ones(2, 4)\n"
        "model = lambda given: net(given).square().mean()\n"
        "save = lambda where: torch.save(net.state_dict(), os.path.join(where, 'model.pt'))\n"
    )
    argv = [sys.executable, "-P", "-W", "error", "-c", around + lines]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in tmp_path.iterdir()} == {"model.pt", "SUREFOOT_COMPLETE.json"}


def test_what_is_to_be_installed_is_a_folder_with_an_extra_that_exists() -> None:
    extras = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    wanted = re.findall(r"pip install '([^']*)\[(\w+)\]'", TEXT + (ROOT / "surefoot/cli.py").read_text().replace("{extra}", "all"))
    assert len(wanted) == 2
    for what, extra in wanted:
        assert what.startswith(("/", ".")), f"{what} is on no index"
        assert extra in extras


def test_the_settings_that_it_shows_can_be_loaded() -> None:
    (lines,) = blocks("yaml")
    assert len(Settings(**yaml.safe_load(lines)).receivers) == 2
