"""The whole agent on the fixture machine: its page and its JSON, and what Debian's promtool says of the page.

The golden files hold whatever the collectors of the registry read there. After a change of either:

    python -m pytest tests/exporters/test_golden_agent.py --write-golden && git diff tests/golden

The difference is for a person to review: each value of it must follow from the fixture.
"""

import json
import runpy
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from exporters.collector import Site
from exporters.compat.registry import COMPAT
from exporters.encode import Accepted
from exporters.once import as_json, as_page, look
from exporters.passes import Outcome
from pipeline.settings import Settings

GOLDEN = Path(__file__).parents[1] / "golden"
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
STEADY = runpy.run_path(str(Path(__file__).with_name("test_collectors.py")))["STEADY"]  # what no fixture can fix


def steady(outcome: Outcome) -> Outcome:
    def reading(one: Accepted) -> Accepted:
        return one._replace(numbers=tuple(STEADY.get(metric.name, value) for metric, value in one.values))

    return replace(outcome, seconds=0.001, source=Path(outcome.source).name, readings=[reading(one) for one in outcome.readings])


@pytest.fixture
def outcomes(site: Site, tmp_path: Path) -> Sequence[Outcome]:
    settings = Settings(node="node1", state_dir=tmp_path, ring_dir=tmp_path, agent=site.settings.model_copy(update={"timeout": 60.0}))
    return [steady(outcome) for outcome in look(settings, site, clock=lambda: AT)]


def golden(name: str, text: str, config: pytest.Config) -> str:
    """The golden text; `text` itself becomes it where that was asked for."""
    if config.getoption("--write-golden"):
        (GOLDEN / name).write_text(text, encoding="utf-8")
    return (GOLDEN / name).read_text(encoding="utf-8")


def test_the_page_of_the_fixture_machine_is_the_golden_one(outcomes: Sequence[Outcome], pytestconfig: pytest.Config) -> None:
    page = as_page(outcomes, "node1", AT)
    assert page == golden("agent.prom", page, pytestconfig)


def test_the_json_of_the_fixture_machine_is_the_golden_one(outcomes: Sequence[Outcome], pytestconfig: pytest.Config) -> None:
    line = as_json(outcomes, "node1", AT)
    assert "\n" not in line
    text = json.dumps(json.loads(line), indent=1) + "\n"
    assert text == golden("agent.json", text, pytestconfig)


def test_json_and_page_have_the_same_values(outcomes: Sequence[Outcome]) -> None:
    found = json.loads(as_json(outcomes, "node1", AT))
    values = sorted(float(one["value"]) for device in found["devices"] for one in device["readings"].values())
    page = as_page(outcomes, "node1", AT)
    assert values == sorted(float(line.rpartition(" ")[2]) for line in page.splitlines() if not line.startswith("#"))
    assert {one["name"] for one in found["collectors"]} == {outcome.name for outcome in outcomes}


PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here (Debian: prometheus)")
def test_promtool_has_nothing_to_say_of_the_page(outcomes: Sequence[Outcome]) -> None:
    page = as_page(outcomes, "node1", AT)
    done = subprocess.run([str(PROMTOOL), "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not here (Debian: prometheus)")
def test_with_foreign_names_promtool_speaks_of_those_alone(outcomes: Sequence[Outcome]) -> None:
    page = as_page(outcomes, "node1", AT, list(COMPAT.values()))
    done = subprocess.run([str(PROMTOOL), "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False)
    said = (done.stdout + done.stderr).splitlines()
    assert all(line.split(" ", 1)[0].startswith(("DCGM_", "node_")) for line in said), said
