"""The console as a person uses it: a real Chromium follows an incident's link, acknowledges it and approves its restart."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium")
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
QUIET += ["--disable-component-update", "--disable-sync"]
ARTIFACTS = Path(__file__).parents[2] / "artifacts"
PATIENCE = 60_000  # ms; a ceiling, not an expectation

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")]


@dataclass
class RunningDrill:
    """A drill in mode approve: it waits for the person in front of the browser."""

    process: subprocess.Popen[str]
    console: str
    lines: list[str]

    def result(self) -> dict[str, object]:
        rest, _ = self.process.communicate(timeout=150)
        return dict(json.loads(rest.strip().splitlines()[-1]))


@pytest.fixture
def approving_drill(tmp_path: Path) -> Iterator[RunningDrill]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}
    words = ["drill", "kill", "--mode", "approve", "--keep", str(tmp_path / "d"), "--json", "--timeout", "150"]
    process = subprocess.Popen(
        [sys.executable, "-u", "-P", "-m", "surefoot", "--log-level", "warning", *words], stdout=subprocess.PIPE, text=True, env=env
    )
    assert process.stdout
    lines: list[str] = []
    while not any("console " in line for line in lines):
        lines.append(process.stdout.readline())
        assert process.poll() is None, lines
    yield RunningDrill(process, lines[-1].split()[-1], lines)
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def test_a_person_follows_the_link_acknowledges_and_approves(approving_drill: RunningDrill) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = browser.new_page(viewport={"width": 1440, "height": 1500})
        page.goto(approving_drill.console)
        page.get_by_role("link", name="rank 1").first.wait_for(timeout=PATIENCE)
        page.screenshot(path=ARTIFACTS / "now-open-incident.png")
        page.get_by_role("link", name="rank 1").first.click()
        page.get_by_role("button", name="Acknowledge").wait_for(timeout=PATIENCE)
        link = page.url
        assert "incident=" in link
        page.reload()
        page.get_by_role("button", name="Acknowledge").wait_for(timeout=PATIENCE)
        assert page.url == link
        page.get_by_role("button", name="Acknowledge").click()
        page.get_by_text("Acknowledged by").first.wait_for(timeout=PATIENCE)
        page.screenshot(path=ARTIFACTS / "incident-acknowledged.png", full_page=True)
        page.get_by_role("button", name="Approve").click()
        page.get_by_text("Resolved", exact=True).first.wait_for(timeout=PATIENCE)
        time.sleep(1)  # let the timeline's last refresh land before it is kept as a picture
        page.screenshot(path=ARTIFACTS / "incident-resolved.png", full_page=True)
        browser.close()
    result = approving_drill.result()
    assert result["wrong"] == []
