"""Each page on an empty store, with an open and with a resolved incident, and what its buttons write."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Button

from dashboard import ask, serve
from pipeline.catalog.runs import ended_here
from pipeline.clock import utcnow
from pipeline.errors import StoreUnavailable
from pipeline.hold_records import HoldTransition, MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.queries.incident_history import incident_history
from pipeline.queries.requests_about import requests_about
from pipeline.records import Beat, NotificationTransition, Request, RunTransition
from pipeline.settings import ConsoleSettings, Settings
from pipeline.store import Store
from slo.figures_job import FiguresJob

Console = Callable[..., AppTest]
Says = Callable[[AppTest], str]


def button(page: AppTest, label: str) -> Button:
    (found,) = [b for b in page.button if b.label == label]
    return found


def test_now_on_an_empty_store_is_unknown_and_says_how_to_start(console: Console, says: Says) -> None:
    said = says(console("now"))
    assert "Not known: part of the picture is missing. No agent has been heard yet." in said
    assert "Everything is fine" not in said
    assert "surefoot run -- torchrun" in said and "surefoot drill kill" in said
    assert "Goodput, last hour no data" in said


def hold(kind: type[HoldTransition], seed: Any, *, start: float, end: float | None, **more: Any) -> HoldTransition:
    """A hold that began `start` seconds ago and ends so many seconds ago (before nought: ahead)."""
    usual: dict[str, Any] = {"old_state": "", "new_state": "held", "reason": "rack move", "actor": "ann", "owner": "ann"}
    usual |= {"at": seed.back(start), "starts_at": seed.back(start), "ends_at": None if end is None else seed.back(end)}
    return kind(**usual | {"hold": f"h{start:g}", "matcher": "node=gpu-07"} | more)


def test_what_is_held_back_is_listed_with_its_owner_and_its_end(console: Console, later: Callable[[], None], says: Says, seed: Any) -> None:
    said = says(console("silences"))
    assert said.count("None. To begin one:") == 3 and "surefoot actions pause --for 30m --reason" in said
    seed.write(hold(SilenceTransition, seed, start=60, end=-3600), hold(MaintenanceTransition, seed, start=-600, end=-7200))
    seed.write(hold(SilenceTransition, seed, start=900, end=300, hold="old", matcher="run=<b>r</b>"))
    later()
    page = console("silences")
    said = says(page)
    assert "holds node=gpu-07" in said and "planned node=gpu-07" in said and "ann rack move h60" in said
    assert said.index("holds node=gpu-07") < said.index("ended run=&lt;b&gt;r&lt;/b&gt;")


def test_every_page_has_a_banner_while_acting_is_paused_and_none_after(
    console: Console, later: Callable[[], None], says: Says, seed: Any
) -> None:
    seed.write(hold(PauseTransition, seed, start=30, end=None, matcher=""))
    app = AppTest.from_file(str(Path(serve.__file__).with_name("app.py")), default_timeout=60).run()
    said = says(app)
    assert said.index("Surefoot does not act. ann paused it at") < said.index("Signs of life")
    assert "until somebody resumes it: rack move. Detection and pages go on. Resume it with surefoot actions resume ." in said
    seed.write(hold(PauseTransition, seed, start=30, end=None, matcher="", old_state="held", new_state="ended", at=seed.back(1)))
    later()
    assert "Surefoot does not act" not in says(app.run())


def test_an_incident_tells_that_its_page_was_held_back_and_why(console: Console, says: Says, seed: Any) -> None:
    seed.waiting("r", ago=42)
    why = "node=gpu-08 is silenced until 2026-11-30 14:00:00 UTC by ann: rack move"
    seed.write(
        NotificationTransition(
            **{"old_state": "", "new_state": "held", "reason": why, "actor": "leader", "at": seed.back(30), "receiver": ""},
            **{"notification": "inc-open:held:h1", "incident": "inc-open", "event": "trigger", "dedup_key": "inc-open"},
        )
    )
    assert f"Trigger held back {why}" in says(console("incident", incident="inc-open"))


@pytest.mark.parametrize(
    ("page", "hint"), [("run", "No run yet. Start your training under the launcher"), ("incident", "No incident yet. Good.")]
)
def test_other_pages_on_an_empty_store_say_what_to_do(console: Console, says: Says, page: str, hint: str) -> None:
    assert hint in says(console(page))


def test_a_run_says_which_of_its_nodes_would_not_be_missed_for_want_of_an_agent(
    console: Console, says: Says, later: Any, seed: Any
) -> None:
    seed.run("r", nodes=("gpu-07", "gpu-08"), ranks=2, seconds=120, step_seconds=1.0)
    seed.signs(nodes=("gpu-07",))
    common = {"component": "launcher", "run": "r", "attempt": "r-1", "state": "running"}
    seed.write(*(Beat(**common, at=seed.back(0.5), node=node) for node in ("gpu-07", "gpu-08", "gpu-09")))
    assert "▲ no agent A lost node would not be noticed: start surefoot agent on gpu-08, gpu-09." in says(console("run", run="r"))
    seed.signs(nodes=("gpu-07", "gpu-08", "gpu-09"))
    later()
    assert "no agent" not in says(console("run", run="r"))


@pytest.mark.parametrize(("missing", "warned"), [(1, True), (0, False)])
def test_a_run_whose_other_nodes_did_not_all_say_that_they_ended_is_finished_with_a_warning(
    console: Console, says: Says, seed: Any, missing: int, warned: bool
) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=120, step_seconds=1.0)
    end = {"old_state": "started", "new_state": "finished", "reason": ended_here(missing, 2), "actor": "l", "at": seed.back(1)}
    seed.write(RunTransition(**end, run="r", node="gpu-07", exit_code=0))
    said = says(console("run", run="r"))
    assert (
        "▲ not all nodes are known to have ended well The command ended well here; 1 of 2 other nodes did not say so." in said
    ) is warned
    assert ("The command ended well." in said) is not warned


def test_now_is_fine_only_when_everything_was_heard(console: Console, says: Says, seed: Any) -> None:
    seed.signs()
    seed.run("r", nodes=("gpu-07", "gpu-08"), ranks=2, seconds=120, step_seconds=1.0)
    said = says(console("now"))
    assert "Everything is fine. No incident is open, every part was heard; 1 run in progress." in said
    # the ledger reaches from 120 s to 20 s ago: 8 s init and 6 s loading, then 86 s productive, on each of 2 ranks
    assert "Goodput, last hour 86.0 %" in said
    # the checkpoint was 60 s before the seed was made, and 2 ranks went on
    assert "Work at risk 1" in said and "GPU-s since the last complete checkpoints" in said


def test_now_shows_the_time_to_repair_and_no_data_where_nothing_was_resolved(
    console: Console, says: Says, later: Callable[[], None], seed: Any, store: Store
) -> None:
    """The seed's incident took 39.4 s from its onset; a figure of ten minutes ago does not count."""
    job = FiguresJob(store, lambda: seed.now)
    FiguresJob(store, lambda: seed.back(600)).run_pass(None)
    assert "MTTR, last 24 h no data not computed in the last 5 min" in says(console("now"))
    job.run_pass(None)
    later()
    assert "MTTR, last 24 h no data no incident was resolved" in says(console("now"))
    seed.crash("r", ago=150)
    FiguresJob(store).run_pass(seed.back(110.6))
    later()
    assert "MTTR, last 24 h 39 s mean 39 s \u00b7 p90 39 s \u00b7 1 resolved" in says(console("now"))


def test_a_silent_agent_is_shown_as_unknown_never_as_ok(console: Console, says: Says, seed: Any) -> None:
    seed.signs(silent=("gpu-11",))
    said = says(console("now"))
    assert "Not known: part of the picture is missing. The agent on gpu-11 has been silent for more than 30 s." in said
    assert "? agent on gpu-11 unknown: heard 1 min" in said


def test_now_leads_to_the_worst_open_incident(console: Console, says: Says, markup_of: Says, seed: Any) -> None:
    seed.signs()
    seed.warning(ago=300)
    seed.waiting("r", ago=42)
    page = console("now")
    assert "Not fine: r hangs: rank 5 never reached the all_reduce of step 2431 rank 5 on gpu-08 , open since" in says(page)
    assert "nobody has acknowledged it; 1 other incident open." in says(page)
    assert '<a class="sf-status-line" href="incident?incident=inc-open">' in markup_of(page)


def test_an_open_incident_shows_where_why_and_what_waits(console: Console, says: Says, seed: Any) -> None:
    seed.waiting("r", ago=42)
    page = console("incident", incident="inc-open")
    said = says(page)
    for part in (
        "layer communication", "rank 5 on gpu-08", "+4.2 s detected", "+4.6 s located", "not yet recovered",
        "Restart run ● waits for approval",         "Detected by step_stall", "process state T",
        "Trigger sent to pagerduty", "Captured stacks of 2 ranks",
        "The ledger has not reached it yet",
    ):  # fmt: skip
        assert part in said
    assert [b.label for b in page.button] == ["Acknowledge", "Approve", "Cancel"]
    assert [e.label for e in page.expander] == ["Stacks of rank 0 on gpu-08", "Stacks of rank 1 on gpu-08"]


def test_a_resolved_incident_shows_what_it_cost_and_asks_for_nothing(console: Console, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=5.0, crash_at=150)
    seed.crash("r", ago=150)
    page = console("incident", incident="inc-resolved")
    said = says(page)
    # by hand, from the seed: 29 s lost, 1.4 s to detect, 0.4 s to act, 8.6 s to restart, on 2 ranks
    assert "Lost 79 GPU-s: 3 detect, 1 act, 17 restart, 58 lost progress." in said
    assert "+10 s recovered" in said and "+39 s resolved" in said and "✓ succeeded" in said
    assert [b.label for b in page.button] == []


def test_a_run_shows_its_pace_its_attempts_and_its_losses(console: Console, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=5.0, crash_at=150)
    seed.crash("r", ago=150)
    page = console("run", run="r")
    said = says(page)
    for part in (
        "attempt r-2: running", "Restarts 1 2 attempts, 2 ranks", "rank 3 on gpu-07 was killed by SIGKILL; the others were stopped",
        "lost 79 GPU-s: 3 detect",
        "comm_wait: all_reduce", "54.6k tok/s",
    ):  # fmt: skip
        assert part in said
    assert said.count("lost 79 GPU-s") == 1
    assert [t.label for t in page.tabs] == ["Step time", "Loss", "Phases"]
    assert len(page.get("vega_lite_chart")) == 3


@pytest.mark.parametrize(
    ("page", "query", "said"),
    [
        ("incident", {"incident": "<b>x</b>"}, "No incident is called &lt;b&gt;x&lt;/b&gt;."),
        ("run", {"run": "<b>x</b>"}, "No run is called &lt;b&gt;x&lt;/b&gt;."),
    ],
)
def test_an_unknown_address_gets_help_and_is_never_markup(
    console: Console, markup_of: Says, page: str, query: dict[str, str], said: str
) -> None:
    markup = markup_of(console(page, **query))
    assert said in markup and f'<a href="{page}">All {page}s</a>' in markup
    assert "<b>x" not in markup


def test_the_goodput_chart_ends_at_the_last_whole_bar_before_now_and_its_title_says_its_length(
    console: Console, says: Says, seed: Any
) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=125, step_seconds=1.0)
    page = console("now")
    read = utcnow().timestamp()
    (chart,) = page.get("vega_lite_chart")
    first, last = (end / 1000 for end in json.loads(chart.proto.spec)["encoding"]["x"]["scale"]["domain"])
    assert read - 10 - 60 < last <= read and last % 10 == first % 10 == 0  # 60 s: how long the page may take to be drawn here
    assert last - first in (120, 130)  # 125 s back, in bars of 10 s
    said = {120: "last 2 min, a bar every 10 s", 130: "last 2 min 10 s, a bar every 10 s"}
    assert said[int(last - first)] in says(page)


def test_the_work_at_risk_is_not_known_while_the_ranks_are_not(console: Console, says: Says, seed: Any) -> None:
    start = RunTransition(old_state="", new_state="started", reason="", actor="l", at=seed.back(30), run="r", node="n", command="train.py")
    seed.write(start)
    assert "Work at risk no data no complete checkpoint yet Restarts 0 no attempt, ranks unknown" in says(console("run", run="r"))


def test_legends_stand_outside_the_charts_where_they_wrap(console: Console, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=125, step_seconds=1.0)
    page = console("run", run="r")
    charts = [json.loads(chart.proto.spec) for chart in page.get("vega_lite_chart")]
    colours = [e["color"] for spec in charts for layer in spec.get("layer", [spec]) if "color" in (e := layer["encoding"])]
    assert len(colours) == 2 and all(colour["legend"] is None for colour in colours)
    said = says(page)
    assert "rank 0 rank 1 The first step of each attempt is left out" in said
    assert "data forward backward optimizer comm wait" in said


def test_text_from_data_is_never_markup(console: Console, markup_of: Says, seed: Any, store: Store) -> None:
    seed.waiting("r", ago=42)
    (row,) = incident_history(store, "inc-open")
    seed.write(replace(row, title="<script>alert(1)</script>", node="<img src=x>", at=row.at + timedelta(seconds=1)))
    for page in (console("incident", incident="inc-open"), console("incident"), console("now")):
        assert "<script>" not in markup_of(page) and "<img" not in markup_of(page)
        assert "&lt;script&gt;" in markup_of(page)


def test_two_sessions_that_both_approve_write_one_request(console: Console, says: Says, seed: Any, store: Store) -> None:
    seed.waiting("r", ago=42)
    one, two = console("incident", incident="inc-open"), console("incident", incident="inc-open")
    for page in (one, two):
        button(page, "Approve").click().run()
        assert "Asked to approve at" in says(page) and "waiting for the leader" in says(page)
        assert [b.label for b in page.button] == ["Acknowledge"]
    assert store.query("SELECT kind, target, actor, count() AS rows FROM requests GROUP BY ALL") == [
        {"kind": "approve", "target": "act-inc-open", "actor": "console", "rows": 1}
    ]


def test_a_double_click_writes_one_request(console: Console, seed: Any, store: Store) -> None:
    seed.waiting("r", ago=42)
    page = console("incident", incident="inc-open")
    approve = button(page, "Approve")
    approve.click().run()
    approve.click().run()  # the browser's second click comes from the page as it was
    assert [r.kind for r in requests_about(store, ["act-inc-open"])] == ["approve"]
    assert store.query("SELECT count() AS n FROM requests")[0]["n"] == 1


def test_acknowledging_waits_until_the_leader_has_done_it(
    console: Console, says: Says, later: Callable[[], None], seed: Any, store: Store
) -> None:
    seed.waiting("r", ago=42)
    page = console("incident", incident="inc-open")
    button(page, "Acknowledge").click().run()
    (request,) = requests_about(store, ["inc-open"])
    assert (request.kind, request.target) == ("acknowledge", "inc-open")
    assert "Asked to acknowledge at" in says(page)
    last = incident_history(store, "inc-open")[-1]
    seed.write(replace(last, old_state="open", at=request.at + timedelta(seconds=0.5), acknowledged_by="console", reason="acknowledged"))
    later()
    page.run()
    assert "Acknowledged by console." in says(page) and "Asked to" not in says(page)
    assert [b.label for b in page.button] == ["Approve", "Cancel"]


def test_a_button_comes_back_with_a_new_intent_when_nobody_answered(seed: Any) -> None:
    state_at = seed.back(500)

    def prepare(*requests: Request) -> ask.Ask:
        return ask.prepare("approve", "a", state_at, requests, seed.now)

    first = prepare()
    assert first.asked_at is None and first.intent == prepare().intent
    asked = Request(intent=first.intent, at=seed.back(30), kind="approve", target="a", actor="console")
    assert prepare(asked).asked_at == asked.at
    again = prepare(replace(asked, at=seed.back(61)))
    assert again.asked_at is None and again.intent != first.intent
    other = [replace(asked, kind="cancel"), replace(asked, target="b"), replace(asked, at=seed.back(600))]  # another kind, target, state
    assert prepare(*other) == first


def test_when_the_store_is_away_pages_say_so_calmly_and_claim_nothing(
    console: Console, says: Says, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUREFOOT_STORE__URL", "http://127.0.0.1:9")  # nobody listens on the discard port
    said = says(console("now"))
    assert "The store does not answer since" in said and "retrying." in said
    assert "Not known: part of the picture is missing. The store does not answer." in said
    assert "No run yet" not in said and "Everything is fine" not in said
    for page, query in (("run", {"run": "r"}), ("incident", {"incident": "i"})):
        said = says(console(page, **query))
        assert "The store does not answer since" in said and "is called" not in said


def test_what_was_read_before_stays_on_the_page_while_the_store_is_away(
    console: Console, says: Says, later: Callable[[], None], seed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed.waiting("r", ago=42)
    page = console("incident", incident="inc-open")

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("connection refused")

    monkeypatch.setattr(Store, "query", away)  # the edge to the foreign server, where it fails
    later()
    page.run()
    said = says(page)
    assert "The store does not answer since" in said and "What you see was read" in said and "connection refused" in said
    assert "rank 5 never reached the all_reduce" in said


def test_the_bare_address_leads_to_now_and_every_page_is_in_the_navigation(console: Console, says: Says) -> None:
    app = AppTest.from_file(str(Path(serve.__file__).with_name("app.py")), default_timeout=60).run()
    assert "Signs of life" in says(app)


def test_the_console_is_started_with_its_settings_and_without_the_agent_api() -> None:
    argv = serve.command(Settings(console=ConsoleSettings(host="127.0.0.9", port=1234)))
    given = dict(zip(argv[6::2], argv[7::2], strict=True))
    assert argv[1:5] == ["-P", "-m", "streamlit", "run"] and Path(argv[5]).is_absolute() and Path(argv[5]).exists()
    assert (given["--server.address"], given["--server.port"], given["--server.headless"]) == ("127.0.0.9", "1234", "true")
    assert (
        given["--server.enableAgentApi"] == given["--browser.gatherUsageStats"] == "false" and given["--server.fileWatcherType"] == "none"
    )
