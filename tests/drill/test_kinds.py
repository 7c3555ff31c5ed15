"""What one forgets when adding a kind of drill: each test names the step that is missing."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import surefoot.drill.kinds
from pipeline.catalog import faults
from surefoot.cli import cli
from surefoot.drill.kinds import COMPARED, LINES, OF_A_NODE, SPREAD
from surefoot.drill.kinds.kind import Kind
from surefoot.drill.kinds.registry import BY_NAME, KINDS
from surefoot.drill.plan import STEPS

ROOT = Path(__file__).parents[2]


def test_every_kinds_file_stands_in_the_registry_and_is_called_like_it() -> None:
    modules = [importlib.import_module(f"surefoot.drill.kinds.{m.name}") for m in pkgutil.iter_modules(surefoot.drill.kinds.__path__)]
    files = {}
    for module in modules:
        if module.__name__.endswith((".registry", ".kind")):
            continue
        for value in vars(module).values():
            if isinstance(value, Kind):
                files[module.__name__.rpartition(".")[2].replace("_", "-")] = value
    assert files == BY_NAME
    assert all(name == kind.name for name, kind in files.items())


def test_every_kind_can_be_chosen_and_has_its_line_in_the_help_in_the_order_of_the_registry() -> None:
    assert [kind.name for kind in KINDS] == list(LINES)
    command = cli.commands["drill"]
    (choice,) = (p.type for p in command.params if p.name == "kind")
    assert list(getattr(choice, "choices", ())) == list(LINES)
    for name, line in LINES.items():
        assert re.search(rf"^  {name} +{re.escape(line)}$", command.help or "", re.M), name


def test_what_is_said_of_some_kinds_is_said_of_kinds() -> None:
    assert {*COMPARED, *OF_A_NODE, *SPREAD} <= BY_NAME.keys()
    assert {kind.name for kind in KINDS if kind.nodes > 1} <= {*SPREAD}


def test_every_kind_names_a_fault_of_the_catalogue_and_what_finds_it_or_what_that_waits_for() -> None:
    expected = {
        "kill": "rank_crash",
        "hang": "rank_stopped",
        "node-loss": "host_down",
        "disk-full": "filesystem_full",
        "read-only": "filesystem_read_only",
        "oom": "host_oom_kill",
        "slow": "gpu_slow",
        "nan": "loss_nan",
    }
    assert {kind.name: kind.fault.name for kind in KINDS} == expected
    for kind in KINDS:
        assert kind.fault is faults.BY_NAME[kind.fault.name]
        if kind.fault.first_action is None:
            assert kind.remove, f"nothing is done about {kind.fault.name}: the drill itself has to end it"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_told_of_in_the_readme_and_drilled_for_real_in_a_test(kind: Kind) -> None:
    assert re.search(rf"drill {kind.name}\b|`{kind.name}`", (ROOT / "README.md").read_text(encoding="utf-8"))
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/e2e").glob("test_*drill*.py"))
    assert f'"{kind.name}"' in tests, f"no end-to-end test drills {kind.name}"


def test_the_help_says_how_long_the_training_of_each_kind_is() -> None:
    (steps,) = (p for p in cli.commands["drill"].params if p.name == "steps")
    others = {kind.name: kind.steps for kind in KINDS if kind.steps != STEPS}
    assert getattr(steps, "show_default", "") == f"{STEPS}; {', '.join(others)}: {max(others.values())}"
    assert len(set(others.values())) == 1
