"""The console in a real browser: a deep link, a reload, an acknowledgement."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from dashboard.serve import command
from pipeline.queries.incident_history import incident_history
from pipeline.queries.requests_about import requests_about
from pipeline.settings import ConsoleSettings, Settings
from pipeline.store import Store
from surefoot.drill.stack import free_ports

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: `apt-get install chromium` to run the browser tests"),
]


@pytest.fixture
def address(store_settings: Settings, store_environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """A running console on this test's store."""
    settings = store_settings.model_copy(update={"console": ConsoleSettings(port=free_ports(1)[0])})
    with (tmp_path / "console.log").open("wb") as log:
        process = subprocess.Popen(command(settings), env=store_environment, cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    try:
        _await(f"{settings.console.link}/_stcore/health", process)
        yield settings.console.link
    finally:
        process.terminate()
        process.wait(20)


def _await(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        try:
            urlopen(url, timeout=30).close()
        except (URLError, OSError):
            assert process.poll() is None, "the console ended"
            time.sleep(0.1)
        else:
            return
    raise AssertionError("the console did not start")


@pytest.fixture
def page() -> Iterator[Any]:
    """A page of a headless Chromium."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        opened = browser.new_page(viewport={"width": 1440, "height": 900})
        opened.set_default_timeout(60_000)
        yield opened
        browser.close()


@pytest.fixture
def keep(tmp_path: Path) -> Path:
    """Where pictures go: the folder that CI keeps, or the test's own."""
    folder = Path(os.environ.get("CI_ARTIFACTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_a_deep_link_survives_a_reload_and_an_acknowledgement_reaches_the_leader(
    address: str, page: Any, seed: Any, store: Store, keep: Path
) -> None:
    seed.signs()
    seed.run("moe-16e-sft", nodes=("gpu-07", "gpu-08"), ranks=4, seconds=200, step_seconds=2.0)
    seed.waiting("moe-16e-sft", ago=42)
    title = page.get_by_role("heading", name="moe-16e-sft hangs: rank 5 never reached the all_reduce of step 2431")

    page.goto(address)  # from the front page, by the link of the card
    page.locator("a.sf-card").first.click()
    title.wait_for()
    assert page.url == f"{address}/incident?incident=inc-open"
    assert page.title() == "moe-16e-sft hangs: rank 5 never reached the all_reduce of step 2431 · Surefoot"
    page.reload()
    title.wait_for()

    page.get_by_role("button", name="Acknowledge").dblclick()
    page.get_by_text("Asked to acknowledge at").wait_for()
    (request,) = requests_about(store, ["inc-open"])
    assert store.query("SELECT count() AS n FROM requests") == [{"n": 1}]
    page.reload()
    page.get_by_text("Asked to acknowledge at").wait_for()  # from the row: the new session has pressed nothing

    last = incident_history(store, "inc-open")[-1]
    seed.write(replace(last, old_state="open", at=request.at + timedelta(seconds=1), acknowledged_by=request.actor, reason="acknowledged"))
    page.get_by_text("✓ Acknowledged by console.").wait_for()  # by itself, without a reload
    page.screenshot(path=keep / "incident.png")

    page.get_by_role("link", name="moe-16e-sft", exact=True).click()
    page.get_by_text("longest without progress first").wait_for()
    assert page.url == f"{address}/run?run=moe-16e-sft" and page.title() == "Run moe-16e-sft · Surefoot"
    page.screenshot(path=keep / "run.png", full_page=True)


WIDER = """() => [
    document.scrollingElement, ...document.querySelectorAll('.stHtml, .stHtml .sf-code, .stHtml .sf-legend, .stVegaLiteChart')
  ].filter(e => e.scrollWidth > e.clientWidth + 1).map(e => `${e.className}: ${e.scrollWidth} in ${e.clientWidth}`)"""


def test_nothing_is_cut_off_on_a_telephone(address: str, page: Any, seed: Any, keep: Path) -> None:
    seed.signs()
    seed.run("llama-8b-sft", nodes=("gpu-07", "gpu-08"), ranks=4, seconds=200, step_seconds=2.0, crash_at=100)
    seed.crash("llama-8b-sft", ago=100)
    page.set_viewport_size({"width": 390, "height": 1600})
    for where, title, awaited in (
        ("now", "Now", "Signs of life"),
        ("fleet", "Fleet", "worst first"),
        ("node?node=gpu-07", "Node gpu-07", "Held back here"),
        ("run", "Runs", "in progress first"),
        ("run?run=llama-8b-sft", "Run llama-8b-sft", "A dashed line"),
        ("incident", "Incidents", "newest first"),
        ("incident?incident=inc-resolved", "Rank 3 of llama-8b-sft was killed by SIGKILL", "What it cost"),
    ):
        page.goto(f"{address}/{where}")
        page.get_by_text(awaited).first.wait_for()
        page.screenshot(path=keep / "telephone.png", full_page=True)
        assert page.title() == f"{title} · Surefoot"
        assert page.evaluate(WIDER) == []
