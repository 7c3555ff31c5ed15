"""The console's runbooks: what a page's link leads to."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).parents[2]


def test_a_runbook_is_shown_as_it_is_written_and_its_links_lead_to_the_others(console: Callable[..., AppTest]) -> None:
    (text,) = [m.value for m in console("runbook", fault="rank_crash").markdown]
    written = (ROOT / "docs/runbooks/rank_crash.md").read_text()
    for name in ("launcher_lost", "host_oom_kill"):
        assert f"]({name}.md)" in written
        written = written.replace(f"]({name}.md)", f"](runbook?fault={name})")
    for heading in ("# rank_crash", "# What", "# Confirm", "# If"):
        written = written.replace(heading, f"##{heading}")
    assert text.strip() == written.strip()


def test_without_a_known_fault_all_runbooks_are_listed(console: Callable[..., AppTest], says: Callable[[AppTest], str]) -> None:
    told = says(console("runbook", fault="../../README"))
    assert "There is no runbook for ../../README." in told
    for page in (ROOT / "docs/runbooks").glob("*.md"):
        assert f"{page.stem} :" in told


def test_an_incident_links_to_its_runbook(console: Callable[..., AppTest], seed: Any, markup_of: Callable[[AppTest], str]) -> None:
    seed.crash("r", "i", ago=60.0)
    assert 'href="./runbook?fault=rank_crash"' in markup_of(console("incident", incident="i"))
