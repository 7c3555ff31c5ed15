"""How far collectors had come, kept by the agent for the next one."""

import json
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from exporters.agent import Agent
from exporters.collector import Observation, Site
from exporters.registry import Entry
from exporters.sending.sender import SenderStats
from pipeline.clock import utcnow
from pipeline.records import Record
from pipeline.settings import Settings


class Logs:
    """Reads a file at each look, and has done with the one before."""

    def __init__(self) -> None:
        self.looks = 0

    def collect(self, now: datetime) -> list[Observation]:
        self.looks += 1
        return []

    def kept(self) -> dict[str, int | None]:
        return {f"log/{self.looks - 1}": None, f"log/{self.looks}": 100}


class Taken:
    """Delivers all that it was given when it is closed."""

    def __init__(self) -> None:
        self.queued = self.settled = 0

    def send_records(self, records: Sequence[tuple[str, Record]]) -> None:
        self.queued += 1

    def send_metrics(self, scopes: Iterable[bytes]) -> None:
        self.queued += 1

    def flush(self) -> None: ...

    def clock_offset(self) -> float | None:
        return None

    def stats(self) -> SenderStats:
        return SenderStats(0, {}, {}, 0, 0, 0, 0, 0, 0, True)

    def close(self, timeout: float = 5.0) -> None:
        self.settled = self.queued


def test_what_a_collector_has_done_with_is_forgotten_and_an_agent_that_ends_keeps_how_far_all_came(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    logs, settings = Logs(), Settings(node="n", state_dir=tmp_path / "state", ring_dir=tmp_path / "rings")
    agent = Agent(settings, Site("n", proc=tmp_path), Taken(), [Entry("logs", (), lambda _: logs)])
    now, clock = utcnow(), time.monotonic()  # and ahead of it: none is looked at once more at the end
    for _ in range(5):
        clock += 10
        agent.turn(now, clock)
        end = time.monotonic() + 30
        while any(runner.busy for runner in agent._runners):
            assert time.monotonic() < end
            time.sleep(0.001)
    agent.close()
    assert logs.looks > 2
    assert json.loads((tmp_path / "state/agent.collectors.json").read_text()) == {f"log/{logs.looks}": 100}
