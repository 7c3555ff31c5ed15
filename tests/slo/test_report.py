"""The report of a period: its figures against a hand calculation on a real store, and its page.

The period is two hours, [0, 7200) s. GPU-seconds per rank of run a (2 ranks), cut at the edges:
    productive 0-600, detect 600-660, restart 660-960, lost_progress 960-1200 (incident i1: 600), productive 1200-3600,
    checkpoint 3600-3700, unknown 3700-4000, productive 4000-7200             = 7200, of which productive 6200
of run b (1 rank): productive 0-3000, slow 3000-3360, restart 3360-3600 (i2)   = 3600, of which productive 3000
Together 2 x 7200 + 3600 = 18000, productive 2 x 6200 + 3000 = 15400: goodput 15400 / 18000 = 0.8556 (the mean of the two
runs' ratios would be 0.847). Lost: i1 1200, unknown 600, slow 360, i2 240, checkpoint 200: 2600 = 18000 - 15400.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST
from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.records import Beat, IncidentTransition, LedgerEntry, Record, RunTransition
from pipeline.store import Store
from slo.report.facts import Facts, Quiet, gather, union
from slo.report.page import page
from surefoot.commands.report import period

T0 = utcnow().replace(minute=0, second=0, microsecond=0) - timedelta(hours=4)
LENGTH = 7200


def at(second: float) -> datetime:
    return T0 + timedelta(seconds=second)


class Period:
    """Writes into a store what happened."""

    def __init__(self, store: Store) -> None:
        self.store, self._count = store, 0

    def put(self, *records: Record) -> None:
        self._count += 1
        self.store.insert(list(records), token=f"period-{self._count}")

    def ledger(self, run: str, ranks: int, *pieces: tuple[float, float, str, str], generation: int = 2) -> None:
        self.put(
            *(
                LedgerEntry(
                    run=run,
                    attempt=f"{run}-1",
                    generation=generation,
                    rank=rank,
                    started_at=at(first),
                    ended_at=at(last),
                    category=category,
                    incident=incident,
                )
                for rank in range(ranks)
                for first, last, category, incident in pieces
            )
        )

    def run(self, run: str, started: float, ended: float | None, ranks: int) -> None:
        common: dict[str, Any] = {"reason": "", "actor": "t", "run": run, "node": "n1", "ranks": ranks}
        self.put(RunTransition(old_state="", new_state="started", at=at(started), **common))
        if ended is not None:
            self.put(RunTransition(old_state="started", new_state="finished", at=at(ended), **common))

    def incident(self, name: str, fault: str, run: str, onset: float, *, title: str = "", **times: float) -> None:
        """Opened 5 s after its onset, and resolved where `resolved_at` is given."""
        common: dict[str, Any] = {"reason": "", "actor": "t", "incident": name, "key": name, "fault": fault, "layer": "framework"}
        common |= {"severity": "critical", "title": title or f"title of {name}", "run": run, "node": "n1", "onset": at(onset)}
        self.put(IncidentTransition(old_state="", new_state="open", at=at(onset + 5), detected_at=at(onset + 5), **common))
        given = {k: at(v) for k, v in times.items()}
        if "resolved_at" in given:
            over = given["resolved_at"]
            self.put(IncidentTransition(old_state="open", new_state="resolved", at=over, detected_at=at(onset + 5), **common, **given))

    def readings(self, node: str, *seconds: range) -> None:
        rows = [{"device_id": device_id(HOST, {"node": node}), "ts": at(s), "node": node, "load1": 1.0} for some in seconds for s in some]
        self._count += 1
        self.store.insert_rows("host_raw", rows, token=f"period-{self._count}")

    def beats(self, component: str, *seconds: range) -> None:
        self.put(*(Beat(component=component, at=at(s)) for some in seconds for s in some))

    def two_hours(self) -> None:
        self.ledger("a", 2, (-600, 7800, "idle", ""), generation=1)  # an older generation does not count
        self.ledger(
            "a", 2, (-600, 600, "productive", ""), (600, 660, "detect", "i1"), (660, 960, "restart", "i1"),
            (960, 1200, "lost_progress", "i1"), (1200, 3600, "productive", ""), (3600, 3700, "checkpoint", ""),
            (3700, 4000, "unknown", ""), (4000, 7800, "productive", ""),
        )  # fmt: skip
        self.ledger("b", 1, (0, 3000, "productive", ""), (3000, 3360, "slow", ""), (3360, 3600, "restart", "i2"))
        self.run("a", -700, None, 2)
        self.run("b", 0, 3600, 1)
        self.run("c", 7000, None, 4)  # not in the ledger yet
        self.run("d", 6000, None, 0)  # never told how many ranks it has
        self.incident("i0", "rank_crash", "a", -1000, resolved_at=-100)  # over before
        self.incident("i5", "rank_crash", "a", -300, recovered_at=-10, resolved_at=100)
        self.incident("i1", "rank_crash", "a", 600, recovered_at=960, caught_up_at=1200, resolved_at=1210, title="Rank 3 of <a> | died")
        self.incident("i2", "collective_hang", "b", 3300, recovered_at=3600, resolved_at=3600)
        self.incident("i3", "telemetry_lost", "", 5000)  # open, and hurts no run
        self.incident("i6", "rank_crash", "a", 7300)  # after the end
        self.readings("n1", range(0, 7200, 30))
        self.readings("n2", range(0, 1000, 30), range(1400, 7200, 30))  # nothing from 990 to 1400
        self.readings("n3", range(-900, -470, 30))  # heard before, last at 480 s before
        self.readings("n4", range(0, 6001, 30))
        self.beats("jobs", range(0, 7200, 30))
        self.beats("ingest", range(0, 2000, 30), range(2300, 7200, 30))  # nothing from 1980 to 2300


@pytest.fixture
def facts(store: Store) -> Facts:
    """Of the two hours, as known three hours after T0."""
    Period(store).two_hours()
    return gather(store, at(0), at(LENGTH), at(10_800), agent_interval=10.0)


def test_the_figures_are_those_of_the_hand_calculation(facts: Facts) -> None:
    assert facts.gpu_seconds == 18000 and facts.productive == 15400
    assert facts.goodput == pytest.approx(15400 / 18000)
    assert [(c.name, c.kind, c.gpu_seconds, c.incidents) for c in facts.causes] == [
        ("rank_crash", "incident", 1200, 1),
        ("unknown", "unknown", 600, 0),
        ("slow", "waiting", 360, 0),
        ("collective_hang", "incident", 240, 1),
        ("checkpoint", "overhead", 200, 0),
    ]
    assert facts.productive + sum(c.gpu_seconds for c in facts.causes) == facts.gpu_seconds
    assert [(r.run, r.gpu_seconds, r.goodput) for r in facts.runs] == [
        ("a", 14400, pytest.approx(12400 / 14400)),
        ("b", 3600, pytest.approx(3000 / 3600)),
    ]


def test_time_to_repair_is_over_what_was_resolved_in_the_period_with_full_length(facts: Facts) -> None:
    """Resolved: i1 after 610 s, i2 after 300 s, i5 after 400 s although it began before. i3 is open, i0 and i6 do not belong here."""
    r = facts.repair
    assert r.resolve and (r.resolve.count, r.resolve.median, r.resolve.p90) == (3, 400, 610)
    assert r.resolve.mean == pytest.approx(1310 / 3)
    assert r.recover and (r.recover.count, r.recover.mean, r.recover.median, r.recover.p90) == (3, pytest.approx(950 / 3), 300, 360)
    assert r.catch_up and (r.catch_up.count, r.catch_up.mean) == (1, 600)
    assert r.open == ("i3",)


def test_incidents_come_with_their_cost_in_the_period_and_their_whole_length(facts: Facts) -> None:
    assert [(i.incident, i.gpu_seconds, i.seconds, i.resolved) for i in facts.incidents] == [
        ("i1", 1200, 610, at(1210)),
        ("i2", 240, 300, at(3600)),
        ("i3", None, 2200, None),  # 5000 to the period's end
        ("i5", None, 400, at(100)),
    ]


def test_downtime_is_the_union_of_outages_that_halted_a_run(facts: Facts) -> None:
    """i1 600 to 960, i2 3300 to 3600; i5 was over before, i3 halts nothing."""
    assert facts.downtime == 360 + 300


def test_what_is_not_known_is_counted(facts: Facts) -> None:
    u = facts.unknown
    assert (u.gpu_seconds, u.share) == (600, pytest.approx(600 / 18000))
    assert u.not_in_ledger == 200 * 4
    assert u.runs_without_ranks == ("d",)
    assert u.agents == (Quiet("n3", 7200, at(-480)), Quiet("n4", 1200, at(6000)), Quiet("n2", 410, None))
    assert u.agents_heard == 4
    assert u.parts == (Quiet("ingest", 320, None),) and u.parts_heard == 2


def test_a_period_that_is_over_counts_as_open_what_was_resolved_after_it(store: Store) -> None:
    Period(store).incident("i1", "rank_crash", "a", 100, recovered_at=900, resolved_at=1000)
    found = gather(store, at(0), at(500), at(10_800), agent_interval=10.0)
    assert [(i.resolved, i.seconds) for i in found.incidents] == [(None, 400)]
    assert found.repair.resolve is None and found.repair.open == ("i1",) and found.downtime == 400


def test_nothing_is_no_data_and_never_zero_percent(store: Store) -> None:
    found = gather(store, at(0), at(LENGTH), at(10_800), agent_interval=10.0)
    assert found.empty and found.goodput is None and found.unknown.share is None and found.repair.resolve is None
    text = page(found, "http://console")
    assert "**No run and no incident is on record for this period.**" in text
    assert "No agent was heard" in text and "Neither `jobs` nor `ingest` was heard" in text
    assert "0.0 %" not in text and "0 GPU" not in text


def test_a_period_in_which_all_went_well_says_so(store: Store) -> None:
    well = Period(store)
    well.ledger("a", 8, (0, 7200, "productive", ""))
    well.run("a", 0, None, 8)
    well.readings("n1", range(0, 7200, 30))
    for part in ("jobs", "ingest"):
        well.beats(part, range(0, 7200, 30))
    text = page(gather(store, at(0), at(LENGTH), at(10_800), agent_interval=10.0), "http://console")
    assert "- **Goodput 100.0 %** of 16.0 GPU-h." in text
    assert "- **No GPU time was lost to incidents.**" in text and "- **No incident.**" in text
    assert "Nothing: every GPU-second and every part was seen." in text
    assert "Time to repair" not in text


def test_a_failure_that_no_incident_explains_is_a_cause_of_its_own(store: Store) -> None:
    Period(store).ledger("a", 1, (0, 90, "productive", ""), (90, 100, "restart", ""))
    (cause,) = gather(store, at(0), at(100), at(200), agent_interval=10.0).causes
    assert (cause.name, cause.kind, cause.gpu_seconds, cause.incidents) == ("unexplained", "incident", 10, 0)


def test_what_is_known_of_surefoot_itself_reaches_back_two_days(store: Store) -> None:
    found = gather(store, at(0) - timedelta(days=7), at(0), at(0), agent_interval=10.0)
    assert found.unknown.parts_known_from == at(0) - timedelta(days=2)
    assert "Whether Surefoot itself was up is known from" in page(found, "http://console")


STRETCH = st.tuples(st.integers(-50, 150), st.integers(0, 60)).map(lambda t: (t[0], t[0] + t[1]))


@given(st.lists(STRETCH, max_size=8))
def test_the_union_counts_each_second_once(stretches: list[tuple[int, int]]) -> None:
    """Against counting whole seconds of [0, 100) one by one."""
    wanted = sum(any(first <= second < last for first, last in stretches) for second in range(100))
    assert union([(at(first), at(last)) for first, last in stretches], at(0), at(100)) == wanted


# --- the page --------------------------------------------------------------------------------


def test_the_page_says_the_most_important_first_and_links_every_incident(facts: Facts) -> None:
    text = page(facts, "https://console.example/surefoot")
    lines = text.splitlines()
    assert lines[0] == f"# Training stability, {at(0):%Y-%m-%d %H:%M} to {at(LENGTH):%Y-%m-%d %H:%M} UTC"
    assert lines[2:6] == [
        "- **Goodput 85.5 %** of 18,000 GPU-s.",
        "- **1,440 GPU-s were lost to incidents** (8.0 %), most of it to `rank_crash` (1,200 GPU-s).",
        "- **4 incidents**, 1 still open. Resolved in 7 min 17 s on average, half of them within 6 min 40 s.",
        "- **3.3 % of the GPU time is unknown**: the true goodput lies up to that much higher.",
    ]
    assert "| A rank's process died (`rank_crash`) | 1 | 1,200 | 6.6 % |" in text
    assert "| **Together** |  | **18,000** |  |" in text
    assert (
        f"| [Rank 3 of \\<a\\> \\| died](https://console.example/surefoot/incident?incident=i1) | n1, run a | {at(600):%Y-%m-%d %H:%M} "
        "| 10 min 10 s | 1,200 |"
    ) in text
    assert "**open**, 36 min 40 s so far | - |" in text
    assert "| to resolved | 3 | 7 min 17 s | 6 min 40 s | 10 min 10 s |" in text
    assert "At least one run stood still for 11 min 00 s of the period. 1 incident not resolved by the end" in text
    assert f"- The agent of `n3` is silent since {at(-480):%Y-%m-%d %H:%M} (2 h 00 min of the period)." in text
    assert "- Surefoot's own part `ingest` was silent for 5 min 20 s" in text
    assert "- 800 GPU-s of runs that were up are not in the ledger" in text
    assert "No rank was ever seen of: `d`." in text
    assert len(lines) < 70  # one page


def test_where_the_ledger_is_far_behind_that_comes_first(store: Store) -> None:
    """600 of 6000 GPU-seconds are in the ledger: 90 % are not."""
    behind = Period(store)
    behind.ledger("a", 1, (0, 600, "init", ""))
    behind.run("a", 0, None, 1)
    lines = page(gather(store, at(0), at(6000), at(6000), agent_interval=10.0), "http://c").splitlines()
    assert lines[2:4] == [
        "- **90.0 % of the GPU time is not in the ledger (yet)**: figures are of the rest.",
        "- **Goodput 0.0 %** of 600 GPU-s.",
    ]


def test_many_incidents_stay_one_page(store: Store) -> None:
    many = Period(store)
    for n in range(40):
        many.incident(f"i{n}", "rank_crash", "a", n * 10, resolved_at=n * 10 + 60)
    text = page(gather(store, at(0), at(LENGTH), at(10_800), agent_interval=10.0), "http://c")
    assert text.count("/incident?incident=") == 10 and "And 30 more incidents that cost less: http://c/incident" in text


# --- the command -----------------------------------------------------------------------------

NOW = datetime(2026, 11, 30, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ((None, None, None), (NOW - timedelta(days=7), NOW)),
        ((None, None, "24h"), (NOW - timedelta(days=1), NOW)),
        (("2026-11-01", "2026-11-08", None), (datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 8, tzinfo=UTC))),
        (("12:00", "23:00", None), (datetime(2026, 11, 30, 12, tzinfo=UTC), NOW)),  # what lies ahead is cut off
    ],
)
def test_the_period_that_options_name(options: tuple[str | None, str | None, str | None], wanted: tuple[datetime, datetime]) -> None:
    assert period(*options, NOW) == wanted


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("2026-11-01", None, "24h"), "not both"),
        ((None, "2026-11-01", None), "--to needs --from"),
        (("2026-11-08", "2026-11-01", None), "it ends before it begins"),
        (("2026-12-24", None, None), "it has not begun yet"),
        ((None, None, "soon"), "30m, 24h or 7d"),
    ],
)
def test_a_period_that_is_none_is_refused(options: tuple[str | None, str | None, str | None], why: str) -> None:
    with pytest.raises(InputError, match=why):
        period(*options, NOW)


@pytest.fixture
def say(store_environment: dict[str, str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `surefoot report …`."""

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-P", "-m", "surefoot", "report", *words]
        return subprocess.run(command, env=store_environment, capture_output=True, text=True, timeout=60, check=False)

    return run


def test_the_command_prints_facts_and_writes_the_page(
    say: Callable[..., subprocess.CompletedProcess[str]], store: Store, tmp_path: Path
) -> None:
    Period(store).two_hours()
    given = ("--from", at(0).isoformat(), "--to", at(LENGTH).isoformat())
    told = json.loads(say(*given, "--json").stdout)
    assert (told["gpu_seconds"], told["productive"], told["repair"]["resolve"]["p90"]) == (18000, 15400, 610)
    assert told["start"] == at(0).isoformat() and told["incidents"][0]["incident"] == "i1"
    out = tmp_path / "report.md"
    done = say(*given, "--out", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"wrote {out}\n")
    assert out.read_text().startswith("# Training stability, ") and "incident?incident=i1" in out.read_text()


def test_what_cannot_be_written_or_asked_is_one_line(say: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    for words, why in ((["--out", f"{tmp_path}/none/report.md"], "cannot write"), (["--last", "soon"], "is no length of time")):
        done = say(*words)
        assert done.returncode == 2 and done.stderr.count("\n") == 1 and why in done.stderr
