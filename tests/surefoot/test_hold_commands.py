"""`surefoot silence`, `maintenance` and `actions` against the real store, with a leader and without one."""

import json
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from alerts.outbox import Outbox
from alerts.tick import Tick
from pipeline.errors import InputError
from pipeline.hold_records import MaintenanceTransition, PauseTransition, SilenceTransition
from pipeline.queries.actions_of import actions_of
from pipeline.queries.maintenance_since import maintenance_since
from pipeline.queries.pauses_since import pauses_since
from pipeline.queries.silences_since import silences_since
from pipeline.records import ActionTransition, AttemptTransition, Request, RunTransition
from pipeline.settings import Settings
from pipeline.store import Store
from surefoot import asking
from surefoot.cli import cli

Surefoot = Callable[..., Result]
T0 = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def surefoot(store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Surefoot:
    """Runs a command on this test's store: `surefoot("silence", "list")`."""
    for name, value in store_environment.items():
        if name.startswith("SUREFOOT_"):
            monkeypatch.setenv(name, value)

    def run(*words: str) -> Result:
        return CliRunner().invoke(cli, ["--log-level", "error", *words])

    return run


@pytest.fixture
def leader(store: Store, store_settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A leader that ticks twenty times a second, and is waited for."""
    monkeypatch.setattr(asking, "PATIENCE", 60.0)
    outbox = Outbox(tmp_path / "outbox.sqlite")
    tick, stopping = Tick(store_settings, store, outbox, {}, 1), threading.Event()

    def lead() -> None:
        while not stopping.wait(0.05):
            tick()

    thread = threading.Thread(target=lead)
    thread.start()
    yield
    stopping.set()
    thread.join()
    outbox.close()


def before() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


@pytest.mark.usefixtures("leader")
def test_a_silence_is_added_listed_and_ended(surefoot: Surefoot, store: Store) -> None:
    added = surefoot("silence", "add", "node=Node-7", "--for", "2h", "--reason", "rack move", "--owner", "ann")
    assert added.exit_code == 0, added.output
    assert added.output.startswith("node=node-7 is silenced until ")
    assert " by ann: rack move\nto end it before: surefoot silence end " in added.output
    (held,) = silences_since(store, before())
    assert isinstance(held, SilenceTransition)
    assert held.ends_at and timedelta(hours=1, minutes=59) < held.ends_at - held.starts_at <= timedelta(hours=2)
    assert held.hold in surefoot("silence", "list").output
    (listed,) = json.loads(surefoot("silence", "list", "--json").output)
    assert (listed["hold"], listed["state"], listed["matcher"], listed["owner"]) == (held.hold, "holds", "node=node-7", "ann")
    assert surefoot("silence", "end", held.hold, "--reason", "moved").output == f"silence {held.hold} is ended\n"
    assert [(h.new_state, h.reason) for h in silences_since(store, before())] == [("ended", "moved")]
    assert surefoot("silence", "list").output == "none\n"
    assert "ended" in surefoot("silence", "list", "--all").output
    again = surefoot("silence", "end", held.hold)
    assert again.exit_code == 2
    assert again.stderr == f"surefoot: no silence of the id {held.hold} holds or is planned; `surefoot silence list` shows them\n"


def a_run(store: Store, run: str = "llama", state: str = "started") -> None:
    now = datetime.now(UTC)
    common = {"old_state": "", "reason": "launched", "actor": "launcher:a", "run": run, "node": "a"}
    store.insert([RunTransition(**common, new_state=state, at=now)], token=f"{run}-run")
    store.insert([AttemptTransition(**common, new_state="running", at=now, attempt=f"{run}-1", launch=1)], token=f"{run}-attempt")


@pytest.mark.usefixtures("leader")
def test_a_run_is_stopped_by_a_request_that_the_leader_makes_an_action_of(surefoot: Surefoot, store: Store) -> None:
    a_run(store)
    done = surefoot("stop", "llama", "--reason", "wrong data  set")
    assert done.exit_code == 0, done.output
    assert done.output == "run llama is being stopped: its command has 10 s to end, see http://127.0.0.1:8501/run?run=llama\n"
    (asked,) = store.read(Request, "SELECT * FROM requests")
    assert (asked.kind, asked.target, asked.actor, asked.reason) == ("stop_run", "llama", asking.who(), "wrong data set")
    (ordered,) = actions_of(store, [], ["llama"])
    assert (ordered.kind, ordered.new_state, ordered.attempt, ordered.actor) == ("stop_run", "issued", "llama-1", asking.who())


@pytest.mark.usefixtures("leader")
def test_a_run_goes_on_while_acting_is_paused_and_the_command_says_so(surefoot: Surefoot, store: Store) -> None:
    a_run(store)
    assert surefoot("actions", "pause", "--for", "30m", "--reason", "network work", "--owner", "ann").exit_code == 0
    done = surefoot("stop", "llama", "--reason", "enough")
    assert done.exit_code == 1
    assert done.stderr.startswith("surefoot: run llama goes on: not issued: acting is paused ")


def test_a_run_that_is_not_there_or_over_is_not_asked_to_stop(surefoot: Surefoot, store: Store) -> None:
    a_run(store, "over", "finished")
    none = surefoot("stop", "nobody", "--reason", "x")
    assert (none.exit_code, none.stderr.partition(": the console")[0]) == (2, "surefoot: no run is called nobody")
    over = surefoot("stop", "over", "--reason", "x")
    assert (over.exit_code, over.stderr) == (2, "surefoot: run over is not in progress: it is finished\n")
    assert surefoot("stop", "over", "--reason", " ").stderr == "surefoot: --reason is empty: say why the run is stopped\n"
    assert store.read(Request, "SELECT * FROM requests") == []


@pytest.mark.usefixtures("leader")
def test_a_maintenance_window_is_planned_and_called_off(surefoot: Surefoot, store: Store) -> None:
    start = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    planned = surefoot("maintenance", "add", "node=a", "--from", start.isoformat(), "--for", "1h30m", "--reason", "new riser")
    assert planned.exit_code == 0, planned.output
    (window,) = maintenance_since(store, before())
    assert isinstance(window, MaintenanceTransition)
    assert (window.starts_at, window.ends_at) == (start, start + timedelta(minutes=90))
    assert window.owner == asking.who()
    assert "planned" in surefoot("maintenance", "list").output
    assert surefoot("maintenance", "end", window.hold).exit_code == 0
    assert [w.new_state for w in maintenance_since(store, before())] == ["ended"]


@pytest.mark.usefixtures("leader")
def test_acting_is_paused_says_what_goes_on_and_is_resumed(surefoot: Surefoot, store: Store) -> None:
    under_way = ActionTransition(
        **{"old_state": "issued", "new_state": "accepted", "reason": "", "actor": "launcher:a", "at": datetime.now(UTC), "action": "x"},
        **{"key": "k", "kind": "restart_run", "mode": "auto", "term": 1, "run": "r", "attempt": "r-1"},
    )
    assert surefoot("actions", "list").output == "acting is not paused\n"
    assert surefoot("actions", "resume").stderr == "surefoot: acting is not paused\n"
    store.insert([under_way], token="x")
    paused = surefoot("actions", "pause", "--for", "30m", "--reason", "network work", "--owner", "ann")
    assert paused.exit_code == 0, paused.output
    said, goes_on = paused.output.splitlines()
    assert said.startswith("acting is paused until ") and said.endswith(" by ann: network work")
    assert goes_on == "goes on, since its launcher has taken it up: restart_run of run r, attempt r-1"
    (pause,) = pauses_since(store, before())
    assert isinstance(pause, PauseTransition)
    assert pause.at - store.read(Request, "SELECT * FROM requests")[0].at < timedelta(seconds=2)
    listed = surefoot("actions", "list")
    assert listed.output.splitlines()[0] == said
    assert "restart_run  accepted" in listed.output
    assert json.loads(surefoot("actions", "list", "--json").output)["paused"] == said
    assert surefoot("actions", "resume").output == "Surefoot acts again\n"
    assert surefoot("actions", "list").output.startswith("acting is not paused\n")


def test_without_a_leader_it_is_asked_for_and_the_exit_code_says_that_nobody_answered(surefoot: Surefoot, store: Store) -> None:
    asked = surefoot("silence", "add", "run=r", "--for", "1h", "--reason", "why")
    assert asked.exit_code == 1
    assert "no leader has answered within 5 s: is `surefoot jobs` running?" in asked.stderr
    assert [(r.kind, r.target) for r in store.read(Request, "SELECT * FROM requests")] == [("silence", "run=r")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("silence", "add", "host=a", "--for", "1h", "--reason", "x"), "unknown key 'host' in a matcher; known are node, device"),
        (("silence", "add", "node=a", "--reason", "x"), "say how long: either --for 2h or --until 2026-12-01T08:00Z"),
        (("silence", "add", "node=a", "--for", "1h", "--until", "2099-01-01T00:00Z", "--reason", "x"), "say how long: either"),
        (("silence", "add", "node=a", "--for", "soon", "--reason", "x"), "'soon' is no time span"),
        (("silence", "add", "node=a", "--until", "2020-01-01T00:00Z", "--reason", "x"), "has passed already"),
        (("maintenance", "add", "node=a", "--from", "2099-01-01T00:00", "--for", "1h", "--reason", "x"), "has no time zone; write 2099"),
        (("maintenance", "end", "nothing"), "no maintenance window of the id nothing holds or is planned; `surefoot maintenance list`"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line_and_nothing_is_asked(
    surefoot: Surefoot, store: Store, words: tuple[str, ...], said: str
) -> None:
    refused = surefoot(*words)
    assert refused.exit_code == 2
    assert said in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not store.read(Request, "SELECT * FROM requests")


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172_800), ("366d", 31_622_400)]
)
def test_a_time_span_is_read(text: str, seconds: float) -> None:
    assert asking.span(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "30", "m", "30 m", "-1h", "0m", "367d", "1h30", "1y"])
def test_what_is_no_time_span_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="time span"):
        asking.span(text)


def test_a_time_needs_its_zone_and_becomes_utc() -> None:
    assert asking.moment("2026-11-30T14:00+02:00") == T0
    with pytest.raises(InputError, match="is no time"):
        asking.moment("tomorrow")


@pytest.mark.parametrize("words", [("silence",), ("maintenance",), ("actions",), ("silence", "add"), ("actions", "pause")], ids=" ".join)
def test_every_command_has_help_with_an_example(surefoot: Surefoot, words: tuple[str, ...]) -> None:
    shown = surefoot(*words, "--help")
    assert shown.exit_code == 0
    assert f"Example:  surefoot {words[0]}" in shown.output


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("", "--reason must be 1 to 500 characters"),
        (" \n ", "--reason must be 1 to 500 characters"),
        ("x" * 501, "--reason must be 1 to 500 characters"),
        ("red \x1b[31m alert", "--reason must be plain text, without control characters"),
        ("not text \udcff", "--reason must be plain text, without control characters"),
    ],
)
@pytest.mark.parametrize("words", ["silence add node=a --for 1h", "maintenance add node=a --for 1h", "actions pause"])
def test_a_reason_that_cannot_stand_in_a_page_is_refused(surefoot: Surefoot, words: str, reason: str, said: str) -> None:
    done = surefoot(*words.split(), "--reason", reason)
    assert done.exit_code == 2 and said in done.output
