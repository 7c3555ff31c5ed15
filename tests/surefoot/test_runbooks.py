"""Runbooks: one for each fault that can page, none for what is not there, and what they tell people to type exists."""

import re
from pathlib import Path

import pytest

from exporters.encode import prometheus_name
from pipeline.catalog import runbooks
from pipeline.catalog.faults import BY_NAME, FAULTS
from pipeline.catalog.metrics import BY_NAME as METRICS
from pipeline.settings import ConsoleSettings, all_keys
from surefoot.cli import cli

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs/runbooks"
PAGES = sorted(FOLDER.glob("*.md"))
PARTS = ["What it means", "Confirm it by hand", "What Surefoot does", "If that fails"]
SAYS = {prometheus_name(metric) for _, metric in METRICS.values()}


def test_every_fault_that_can_page_has_its_runbook_and_no_runbook_is_about_something_else() -> None:
    assert {page.stem for page in PAGES} == {fault.name for fault in FAULTS if not fault.waits_for}


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_runbook_answers_the_four_questions_with_commands(page: Path) -> None:
    text = page.read_text()
    assert text.startswith(f"# {page.stem}: ")
    assert re.findall(r"^## (.+)$", text, re.M) == PARTS
    parts = re.split(r"^## .+$", text, flags=re.M)[1:]
    assert all(len(part.strip()) > 80 for part in parts)
    assert "```sh" in parts[1], "nothing can be confirmed without a command"
    assert len(text.splitlines()) < 80, "somebody reads this at three in the morning"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_what_a_runbook_names_exists(page: Path) -> None:
    text = page.read_text()
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert (FOLDER / link).exists(), link
    for command in re.findall(r"^surefoot ([a-z]+)", text, re.M):
        assert command in cli.commands, command
    for name in re.findall(r"`((?:detect|recovery|ingest|agent|job)\.[a-z_]+)`", text):
        assert name in set(all_keys()), name
    for pattern in re.findall(r"grep(?: -E)? '?(surefoot_[a-z_()|]+)", text):
        assert any(re.match(pattern, name) for name in SAYS), pattern
    for name in re.findall(r"`([a-z]+(?:_[a-z]+)+)`", text):
        assert name in BY_NAME or name in ("num_workers",), name


def test_the_address_of_a_runbook_follows_from_the_faults_name_and_is_a_page_of_the_console_where_nothing_else_is_set() -> None:
    at = ConsoleSettings()
    assert runbooks.link("rank_crash", at.runbooks, at.link) == "http://127.0.0.1:8501/runbook?fault=rank_crash"
    assert runbooks.link("mount_hung", "https://wiki.example/surefoot/", at.link) == "https://wiki.example/surefoot/mount_hung.md"
    assert runbooks.link("", "", at.link) == ""
