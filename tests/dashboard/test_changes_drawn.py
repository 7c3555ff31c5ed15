"""What changed, as the pages of a run and of an incident show it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pipeline.records import AttemptFacts, Change, IncidentTransition

OLD = {
    "code.commit": "aaaaaaaaaaaa Tune the loader",
    "code.argv": "torchrun --nproc-per-node 8 train.py --lr 1e-4",
    "package.torch": "2.8.0",
    "env.NCCL_ALGO": "Ring",
}
NEW = OLD | {
    "code.commit": "bbbbbbbbbbbb Fuse <script>",
    "code.argv": "torchrun --nproc-per-node 8 train.py --lr 3e-4",
    "package.torch": "2.9.1",
    "driver.nvidia": "570.86.15",
}
del NEW["env.NCCL_ALGO"]


@pytest.fixture
def says(store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """What a page of the console says: `says("incident", incident="x")`, without its tags, in one line."""
    import re

    for name, value in store_environment.items():
        if name.startswith("SUREFOOT_"):
            monkeypatch.setenv(name, value)

    def forget() -> None:
        st.cache_data.clear()
        st.cache_resource.clear()

    def draw(page: str, **query: str) -> str:
        forget()
        test = AppTest.from_string(f"from dashboard.views import {page}\n{page}.page()\n", default_timeout=60)
        test.query_params.update(query)
        test.run()
        assert not test.exception, test.exception
        body = "\n".join(element.proto.body for element in test.get("html"))
        assert "<script" not in body
        return " ".join(re.sub(r"<[^>]*>", " ", body).split())

    yield draw
    forget()


@pytest.fixture
def restarted(seed: Any) -> Any:
    """Run r: r-1 ran 300 s ago and was killed 100 s ago, r-2 goes on with other code, torch and environment."""
    seed.signs()
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=1.0, crash_at=100.0)
    seed.crash("r", ago=110, node="gpu-07")
    seed.write(AttemptFacts(run="r", attempt="r-1", node="gpu-07", at=seed.back(300), facts=OLD))
    seed.write(AttemptFacts(run="r", attempt="r-2", node="gpu-07", at=seed.back(90), facts=NEW))
    return seed


def test_a_run_shows_what_its_attempt_runs_with_differently_code_first(says: Callable[..., str], restarted: Any) -> None:
    said = says("run", run="r")
    assert "What changed since the last good attempt compared with r-1" in said
    assert "The code or its command line changed: look there first." in said
    commit = said.index("commit aaaaaaaaaaaa Tune the loader bbbbbbbbbbbb Fuse &lt;script&gt;")
    argv = said.index("command line … 1e-4 … 3e-4")
    torch = said.index("package torch 2.8.0 2.9.1")
    driver = said.index("all drivers not known 1 recorded")
    variable = said.index("NCCL_ALGO Ring not set")
    assert commit < argv < torch < driver < variable
    assert said.index("What changed since") < said.index("Incidents of this run") < said.index("Where its GPU time went")


def test_an_incident_of_a_first_attempt_has_nothing_to_compare_with_but_shows_recorded_changes(
    says: Callable[..., str], restarted: Any
) -> None:
    """The incident hit r-1, which no good attempt came before; one change 2 h before it, one after it, one of another node."""
    restarted.write(
        Change(id="1", at=restarted.back(110 + 7200), kind="driver", what="550 -> 570", actor="ops", nodes="gpu-07"),
        Change(id="2", at=restarted.back(60), kind="deploy", what="too late", actor="ops"),
        Change(id="3", at=restarted.back(110 + 600), kind="config", what="elsewhere", actor="ops", nodes="gpu-99"),
        Change(id="4", at=restarted.back(110 + 3 * 86400), kind="config", what="long ago", actor="ops"),
    )
    said = says("incident", incident="inc-resolved")
    assert "No good attempt before this one is on record: nothing to compare with yet." in said
    assert "driver: 550 -&gt; 570 on gpu-07, 2 h 00 min before, by ops" in said
    assert "too late" not in said and "long ago" not in said
    assert said.index("550 -&gt; 570") < said.index("config: elsewhere on gpu-99, 10 min 00 s before")
    assert said.index("What changed since") < said.index("Timeline")


def test_an_incident_of_the_second_attempt_is_compared_with_the_first(says: Callable[..., str], restarted: Any) -> None:
    restarted.write(
        IncidentTransition(
            old_state="",
            new_state="open",
            reason="",
            actor="leader",
            at=restarted.back(30),
            incident="inc-second",
            key="k",
            fault="rank_crash",
            layer="framework",
            severity="critical",
            title="Rank 0 crashed",
            run="r",
            attempt="r-2.1",  # after torchrun's own restart
            onset=restarted.back(31),
        )
    )
    said = says("incident", incident="inc-second")
    assert "What changed since the last good attempt compared with r-1" in said
    assert "commit aaaaaaaaaaaa Tune the loader bbbbbbbbbbbb" in said


def test_nothing_that_differs_points_at_the_machines(says: Callable[..., str], seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=1.0, crash_at=100.0)
    for attempt, age in (("r-1", 300), ("r-2", 90)):
        seed.write(AttemptFacts(run="r", attempt=attempt, node="gpu-07", at=seed.back(age), facts=OLD))
    assert "Nothing that is recorded differs: suspect the machines, the network or the data before the code." in says("run", run="r")


def test_what_lies_beyond_the_first_differences_is_counted(says: Callable[..., str], seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=1.0, crash_at=100.0)
    for attempt, age, version in (("r-1", 300, "1"), ("r-2", 90, "2")):
        facts = {f"package.p{n:02}": version for n in range(20)}
        seed.write(AttemptFacts(run="r", attempt=attempt, node="gpu-07", at=seed.back(age), facts=facts))
    said = says("run", run="r")
    assert "package p07 1 2" in said
    assert "package p19 1 2" in said  # folded away


def test_pages_without_any_facts_or_changes_do_not_speak_of_them(says: Callable[..., str], seed: Any) -> None:
    seed.warning(ago=40)
    assert "What changed" not in says("incident", incident="inc-warning")
