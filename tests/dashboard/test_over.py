"""What the pages say of a run that is over: nothing of it is in progress, and what nobody told is unknown."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import runs, timeline
from pipeline.queries.incident_findings import incident_findings
from pipeline.queries.incident_history import incident_history
from pipeline.records import AttemptTransition, Live
from pipeline.store import Store

Console = Callable[..., AppTest]
Says = Callable[[AppTest], str]


def cells(markup: str, first: str) -> list[str]:
    """The cells of the table row whose first cell begins with `first`, without tags."""
    rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", markup)]
    (found,) = [row for row in rows if row and re.sub(r"<[^>]*>", "", row[0]).startswith(first)]
    return [re.sub(r"<[^>]*>", " ", cell).strip() for cell in found]


def test_the_table_of_runs_says_how_far_a_finished_run_came_and_how_fast(console: Console, markup_of: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=5.0)
    seed.over("r", "finished", "the command ended well", ago=1, code=0, attempt="r-1")
    row = cells(markup_of(console("now")), "r")
    # steps of 5.8 s (1.16 times 5) and 1 ms from 286 s ago on: the last began before now as number 49, so 0 to 49
    assert row[1:6] == ["✓ finished", "r-1", "2", "49", "5.8 s"]
    assert row[7:] == ["-", "0"]


def test_ranks_of_a_finished_run_have_ended_and_say_how(console: Console, markup_of: Says, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=3, seconds=300, step_seconds=5.0)
    seed.over("r", "failed", "rank 1 exited with 1", ago=120, code=1, attempt="r-1")
    page = console("run", run="r")
    markup = markup_of(page)
    assert (cells(markup, "0")[4], cells(markup, "1")[4]) == ("stopped by the launcher (SIGTERM)", "exited with 1")
    assert all(cells(markup, rank)[5].startswith("2 min ") for rank in "01")
    assert cells(markup, "2")[4] == "ended, how is not known"  # nobody told
    assert "running" not in says(page) and "unknown: heard" not in says(page)


def test_a_rank_that_ended_before_the_others_says_so_while_the_attempt_goes_on(console: Console, markup_of: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=60, step_seconds=1.0)
    seed.write(seed.exit("r", "r-1", 1, seed.back(3), "-9", {"signal": "SIGKILL"}))
    markup = markup_of(console("run", run="r"))
    assert cells(markup, "1")[5] == "killed by SIGKILL" and cells(markup, "1")[6].startswith("ended ")
    assert cells(markup, "0")[5] == "running"


def test_an_attempt_whose_launcher_was_lost_is_lost_and_no_longer_grows(console: Console, markup_of: Says, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=2, seconds=300, step_seconds=5.0)
    seed.over("r", "failed", "its launcher is gone and so are its ranks", ago=60)
    page = console("run", run="r")
    row = cells(markup_of(page), "r-1")
    assert (row[1], row[3]) == ("? lost", "unknown")
    assert row[6].startswith("unknown since ") and row[6].endswith(": nobody told how it ended")
    assert "attempt r-1: lost" in says(page) and "Its launcher is gone and so are its ranks." in says(page)


@pytest.mark.parametrize(
    ("told", "over", "said"),
    [
        ("running", False, "running"),
        ("running", True, "lost"),
        ("stopping", True, "lost"),
        ("ended", True, "ended"),
        ("issued", True, "never started"),
        ("issued", False, "issued"),
    ],
)
def test_an_attempt_is_what_was_told_unless_it_cannot_go_on(told: str, over: bool, said: str) -> None:
    assert runs.attempt_state(told, over=over) == said


def test_an_attempt_is_lost_once_the_next_one_began_not_while_that_only_waits(
    console: Console, markup_of: Says, later: Callable[[], None], seed: Any
) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=1, seconds=60, step_seconds=1.0)
    waits = AttemptTransition(
        old_state="", new_state="issued", reason="a restart", actor="leader", at=seed.back(4), run="r", attempt="r-2", launch=2
    )
    seed.write(waits)
    page = console("run", run="r")
    assert (cells(markup_of(page), "r-1")[1], cells(markup_of(page), "r-2")[1]) == ("▸ running", "▸ issued")
    seed.write(replace(waits, old_state="issued", new_state="starting", at=seed.back(3)))
    later()
    page.run()
    assert (cells(markup_of(page), "r-1")[1], cells(markup_of(page), "r-2")[1]) == ("? lost", "▸ starting")


def test_the_ranks_of_an_inner_restart_take_the_place_of_the_old_ones(console: Console, markup_of: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=1, seconds=60, step_seconds=1.0)
    seed.write(Live(run="r", attempt="r-1.1", node="gpu-07", rank=0, at=seed.back(0.1), pid=9, step=7000, process_state="S"))
    step, phase, lasted, process = cells(markup_of(console("run", run="r")), "0")[2:6]
    assert (step, phase, process) == ("7,000", "between phases", "sleeping")
    assert lasted in ("no data", "-"), "the second where drawing took so long that it is stale by now"


def test_a_place_that_a_later_finding_names_is_shown_and_nothing_more_is_awaited(
    console: Console, says: Says, seed: Any, store: Store
) -> None:
    seed.loop("r", ago=100)
    seed.run("r", nodes=("vm",), ranks=1, seconds=110, step_seconds=1.0)
    seed.over("r", "failed", "it failed at the start again", ago=95, code=1)
    said = says(console("incident", incident="inc-loop"))
    assert "layer scheduler rank 0 on vm" in said
    assert "+4.0 s located not reached acted not reached recovered not yet resolved not reached caught up" in said
    assert "Located: rank 0 on vm by a later finding" in said
    assert "The run is over: nothing is done about it any more." in said
    stored = incident_history(store, "inc-loop")[-1]
    assert stored.located_at is None and stored.rank is None
    located = timeline.placed(stored, incident_findings(store, "inc-loop"))
    assert located.located_at == seed.back(96) and located.at == stored.at


def test_an_incident_of_a_failed_run_says_that_acknowledging_closes_it(
    console: Console, says: Says, later: Callable[[], None], seed: Any
) -> None:
    seed.run("r", nodes=("vm",), ranks=1, seconds=110, step_seconds=1.0)
    seed.loop("r", ago=100)
    before = console("incident", incident="inc-loop")
    assert [b.label for b in before.button] == ["Acknowledge"] and "is over" not in says(before)
    seed.over("r", "failed", "it failed at the start again", ago=95, code=1)
    later()
    after = console("incident", incident="inc-loop")
    assert [b.label for b in after.button] == ["Acknowledge and close"]
    assert "The run failed and is over, so nothing is left to recover. Acknowledging says that somebody knows" in says(after)


def test_a_stage_that_a_resolved_incident_never_needed_is_told_from_one_that_the_runs_end_prevented(
    console: Console, says: Says, seed: Any, store: Store
) -> None:
    seed.run("r", nodes=("vm",), ranks=1, seconds=110, step_seconds=1.0)
    seed.over("r", "stopped", "asked by console", ago=50)
    seed.warning(ago=100)
    (row,) = incident_history(store, "inc-warning")
    over = replace(row, new_state="resolved", at=row.at + timedelta(seconds=5), resolved_at=row.at + timedelta(seconds=5), run="r")
    seed.write(over)  # resolved 45 s before the run was stopped
    assert "not needed recovered" in says(console("incident", incident="inc-warning"))
    seed.write(replace(over, incident="inc-3", next_attempt="r-2", acted_at=over.at))
    restarted = says(console("incident", incident="inc-3"))
    assert "not known recovered" in restarted and "not known caught up" in restarted, "its run tells no steps"
    seed.write(replace(over, incident="inc-2"), replace(over, incident="inc-2", at=seed.back(10), resolved_at=seed.back(10)))
    assert "not reached recovered" in says(console("incident", incident="inc-2"))


def test_an_incident_to_which_the_ledger_charges_nothing_does_not_wait_for_it(console: Console, says: Says, seed: Any) -> None:
    seed.run("r", nodes=("gpu-07",), ranks=1, seconds=300, step_seconds=5.0)  # its ledger reaches to 20 s ago
    seed.loop("r", ago=100)
    assert "the ledger charges no GPU time to it." in says(console("incident", incident="inc-loop"))
    seed.loop("r", "inc-young", ago=10)
    assert "The ledger has not reached it yet" in says(console("incident", incident="inc-young"))


@pytest.mark.parametrize("page", ["run", "incident"])
def test_an_unknown_address_shows_what_to_do_and_nothing_else(console: Console, says: Says, page: str) -> None:
    drawn = console(page, **{page: "nobody"})
    assert says(drawn).startswith(f"No {page} is called nobody. Check the address")
    assert says(drawn).endswith(f"All {page}s · Now")
    assert not drawn.tabs and not drawn.button


def test_a_run_that_begins_while_its_address_is_open_appears_by_itself(
    console: Console, says: Says, later: Callable[[], None], seed: Any
) -> None:
    page = console("run", run="r")
    assert "No run is called r." in says(page)
    seed.run("r", nodes=("gpu-07",), ranks=1, seconds=60, step_seconds=1.0)
    later()
    page.run()
    assert "attempt r-1: running" in says(page) and [t.label for t in page.tabs] == ["Step time", "Loss", "Phases"]
