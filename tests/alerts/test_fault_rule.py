"""Rules over readings made by hand: hold and clear against a reference that counts anew each time, limits, and who is hit."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.coverage import covered_by
from alerts.detectors import fault_rule
from alerts.detectors.registry import DETECTORS
from alerts.detectors.verdict import Verdict
from alerts.incidents.correlate import first_transition, home
from alerts.snapshot import AttemptLook, RunLook, Snapshot
from alerts.watch import Watch
from alerts.watched import Place, Said, Standing, Streak, Watched, judge
from pipeline.catalog import events
from pipeline.catalog.faults import FAULTS, RANK_CRASH
from pipeline.catalog.metrics import BY_NAME, FAMILIES, HOST, MOUNT
from pipeline.catalog.rules import FAMILIES as WATCHED
from pipeline.catalog.rules import RULES, Happened, Hold, Limit, Rule, Scope, View
from pipeline.queries import sql
from pipeline.records import Event, FindingTransition
from pipeline.settings import Settings

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
GAP = 35.0
DETECT = Settings().detect
FREE = BY_NAME["mount.free"][1]
ONCE = Hold()


def rule(hold: Hold = ONCE, clear: Hold = ONCE, **more: Any) -> Rule:
    usual: dict[str, Any] = {"fault": RANK_CRASH, "when": (Limit(FREE, 1, 2, above=False),), "says": "s", "cleared": "c"}
    return Rule(**{**usual, "hold": hold, "clear": clear, **more})


def suffix(said: list[tuple[float, Said]], what: Said) -> tuple[int, float]:
    """How many of the last ones say `what` in a row, and the seconds between them that are no gap."""
    mine: list[float] = []
    for at, one in reversed(said):
        if one is not what:
            break
        mine.append(at)
    apart = [later - earlier for later, earlier in pairwise(mine)]
    return len(mine), sum(s for s in apart if s <= GAP)


def reference(said: list[tuple[float, Said]], hold: Hold, clear: Hold) -> list[bool]:
    """Whether the fault is there after each reading, counted anew from the whole past each time."""
    there, states = False, []
    for n in range(len(said)):
        known = [one for one in said[: n + 1] if one[1] is not Said.UNKNOWN]
        wanted, what = (clear, Said.GOOD) if there else (hold, Said.BAD)
        readings, seconds = suffix(known, what)
        if said[n][1] is what and readings >= wanted.readings and seconds >= wanted.seconds - 1e-6:
            there = not there
        states.append(there)
    return states


holds = st.builds(Hold, st.integers(1, 4), st.sampled_from([0.0, 10.0, 30.0, 60.0]))
steps = st.lists(st.tuples(st.sampled_from([1, 5, 10, 20, 36, 300]), st.sampled_from(list(Said))), max_size=40)


@given(steps, holds, holds)
def test_a_fault_opens_and_clears_exactly_where_counting_anew_says_so(apart: list[tuple[int, Said]], hold: Hold, clear: Hold) -> None:
    standing, at, said, states = Standing(rule(hold, clear), Place("a"), NOW), 0.0, [], []
    for seconds, what in apart:
        at += seconds
        said.append((at, what))
        standing.observe(NOW + timedelta(seconds=at), what, {}, GAP)
        states.append(standing.raised)
    assert states == reference(said, hold, clear)


@given(steps, st.integers(0, 40))
def test_no_data_changes_nothing_wherever_it_falls(apart: list[tuple[int, Said]], where: int) -> None:
    def play(readings: list[tuple[float, Said]]) -> tuple[bool, Streak, Streak]:
        standing = Standing(rule(Hold(2, 10), Hold(3, 20)), Place("a"), NOW)
        for at, what in readings:
            standing.observe(NOW + timedelta(seconds=at), what, {}, GAP)
        return standing.raised, standing.bad, standing.good

    at, readings = 0.0, []
    for seconds, what in apart:
        at += seconds
        readings.append((at, what))
    more = [*readings[:where], *((at, Said.UNKNOWN) for at, _ in readings[where : where + 3]), *readings[where:]]
    assert play(readings) == play(more)


def test_the_time_of_a_gap_opens_nothing_and_takes_nothing_away() -> None:
    standing = Standing(rule(Hold(2, 20)), Place("a"), NOW)
    for seconds in (0, 10, 3600):
        standing.observe(NOW + timedelta(seconds=seconds), Said.BAD, {}, GAP)
    assert (standing.raised, standing.bad.seconds, standing.bad.readings) == (False, 10.0, 3)
    standing.observe(NOW + timedelta(seconds=3610), Said.BAD, {}, GAP)
    assert (standing.raised, standing.onset) == (True, NOW)


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        (Limit(FREE, 10, 20, above=False), 10, True),
        (Limit(FREE, 10, 20, above=False), 15, None),
        (Limit(FREE, 10, 20, above=False), 20, False),
        (Limit(FREE, 0.9, 0.5), 0.9, True),
        (Limit(FREE, 0.9, 0.5), 0.7, None),
        (Limit(FREE, 0.9, 0.5), 0.5, False),
        (Limit(FREE, 5, 5), 4.99, False),
        (Limit(FREE, 5, 5), 5, True),
    ],
)
def test_between_the_two_limits_nothing_is_said(limit: Limit, value: float, said: bool | None) -> None:
    assert limit.says(value) is said


@pytest.mark.parametrize(
    ("view", "before", "after", "seconds", "said", "value"),
    [
        (View.INCREASE, 3, 3, 10, Said.GOOD, 0),
        (View.INCREASE, 3, 5, 10, Said.BAD, 2),
        (View.INCREASE, 7, 1, 10, Said.BAD, 1),  # the counter began anew: that one came since
        (View.INCREASE, 7, 0, 10, Said.GOOD, 0),
        (View.INCREASE, 3, 5, 700, Said.UNKNOWN, None),  # some time in the last twelve minutes
        (View.RATE, 100, 130, 10, Said.BAD, 3),
        (View.RATE, 100, 130, 40, Said.UNKNOWN, None),  # over a gap
        (View.RESET, 5, 4, 10, Said.BAD, 1),
        (View.RESET, 5, 5, 10, Said.GOOD, 0),
    ],
)
def test_what_a_counter_says(view: View, before: float, after: float, seconds: float, said: Said, value: float | None) -> None:
    kills = BY_NAME["host.oom_kills"][1]
    mine = rule(when=(Limit(kills, 1, 0, view=view),))
    earlier = {kills.name: (NOW - timedelta(seconds=seconds), float(before))}
    assert judge(mine, (NOW, {kills.name: float(after)}), earlier, GAP) == (said, value)
    assert judge(mine, (NOW, {kills.name: float(after)}), {}, GAP)[0] is Said.UNKNOWN, "the first reading says nothing"
    assert judge(mine, (NOW, {kills.name: None}), earlier, GAP)[0] is Said.UNKNOWN


def test_of_several_limits_all_must_be_bad_one_that_is_good_is_enough_and_half_the_data_is_none() -> None:
    size, read_only = BY_NAME["mount.size"][1], BY_NAME["mount.read_only"][1]
    mine = rule(when=(Limit(FREE, 0.02, 0.05, above=False, of=size), Limit(read_only, 0, 1, above=False)))

    def said(free: float | None, total: float | None, ro: float | None) -> Said:
        return judge(mine, (NOW, {"mount.free": free, "mount.size": total, "mount.read_only": ro}), {}, GAP)[0]

    assert said(1, 100, 0) is Said.BAD
    assert said(1, 100, 1) is Said.GOOD
    assert said(3, 100, 0) is Said.BETWEEN
    assert said(6, 100, 0) is Said.GOOD
    assert said(None, 100, 0) is Said.UNKNOWN
    assert said(0, 0, 0) is Said.UNKNOWN, "of nothing there is no share"
    assert said(1, 100, None) is Said.UNKNOWN


# --- the detector ------------------------------------------------------------------------------


def standing(fault: str, scope: Scope = Scope.ANYWHERE, place: str = "/data", node: str = "a") -> Standing:
    mine = next(r for r in RULES if r.fault.name == fault and r.scope is scope)
    labels = {"mount_point": place, "node": node}
    made = Standing(mine, Place(node, mine.entity, place if mine.entity else "", labels), NOW)
    made.was_good = True
    for seconds in range(-60, 1, 10):
        made.observe(NOW + timedelta(seconds=seconds), Said.BAD, {"mount.free": 0.0, "mount.size": 1e9}, GAP)
    assert made.raised
    return made


def seen(*standings: Standing, runs: tuple[RunLook, ...] = (), mounts: frozenset[str] = frozenset({"/", "/data"})) -> Snapshot:
    by: dict[tuple[str, str], list[Standing]] = {}
    for one in standings:
        by.setdefault((one.rule.fault.name, one.place.key), []).append(one)
    raised = tuple(one for one in standings if one.raised)
    return Snapshot(now=NOW, detect=DETECT, runs=runs, watched=Watched(raised=raised, standings=by, mounts={"a": mounts}))


def run(checkpoints: str = "", node: str = "a", state: str = "started") -> RunLook:
    attempt = AttemptLook(run="r", attempt="r-1", launch=1, state="running", node=node)
    return RunLook(
        run="r",
        node=node,
        state=state,
        started_at=NOW,
        changed_at=NOW,
        exit_code=None,
        reason="",
        attempts=(attempt,),
        checkpoints=checkpoints,
    )


def opened(verdict: Any) -> FindingTransition:
    said = {"old_state": "", "new_state": "open", "reason": verdict.reason, "actor": "x", "at": NOW, "finding": "f", "key": verdict.key}
    what = {"detector": verdict.detector, "fault": verdict.fault.name, "layer": "storage", "severity": "error", "node": verdict.node}
    return FindingTransition(**said, **what, run=verdict.run)


def test_two_rules_that_show_one_fault_at_one_place_are_one_verdict_and_it_is_over_when_both_are() -> None:
    bytes_, inodes = (standing("filesystem_full") for _ in range(2))
    inodes.rule = [r for r in RULES if r.fault.name == "filesystem_full"][1]
    (verdict,) = fault_rule.detect(seen(bytes_, inodes), NOW)
    assert verdict.key == "fault_rule/filesystem_full|node:a/mount_point:/data|"
    well(bytes_)
    assert fault_rule.clears(opened(verdict), seen(bytes_, inodes), NOW) is None
    well(inodes)
    assert fault_rule.clears(opened(verdict), seen(bytes_, inodes), NOW) is not None


def well(one: Standing) -> None:
    for seconds in range(10, 60, 10):
        one.observe(NOW + timedelta(seconds=seconds), Said.GOOD, {}, GAP)


def test_what_matters_only_under_a_run_is_over_when_the_run_is() -> None:
    raised = standing("cpu_contention", Scope.RUN)
    (verdict,) = fault_rule.detect(seen(raised, runs=(run(),)), NOW)
    assert fault_rule.clears(opened(verdict), seen(raised, runs=(run(),)), NOW) is None
    assert fault_rule.clears(opened(verdict), seen(raised), NOW) == "no run is there any more"


def test_what_nobody_has_looked_at_is_not_over() -> None:
    (verdict,) = fault_rule.detect(seen(standing("filesystem_full")), NOW)
    assert fault_rule.clears(opened(verdict), seen(), NOW) is None


def test_what_was_raised_long_ago_and_never_looked_at_since_opens_nothing() -> None:
    assert not fault_rule.detect(seen(standing("filesystem_full")), NOW + timedelta(seconds=601))


@pytest.mark.parametrize(
    ("checkpoints", "mounts", "hit"),
    [
        ("/data/ckpt", {"/", "/data"}, ["r"]),
        ("/data", {"/", "/data"}, ["r"]),
        ("/database/ckpt", {"/", "/data"}, []),
        ("/data/ckpt/run", {"/", "/data", "/data/ckpt"}, []),
        ("", {"/", "/data"}, []),
    ],
)
def test_a_run_is_hit_where_its_checkpoints_lie_and_nowhere_else(checkpoints: str, mounts: set[str], hit: list[str]) -> None:
    raised = standing("filesystem_read_only", Scope.CHECKPOINTS)
    found = fault_rule.detect(seen(raised, runs=(run(checkpoints),), mounts=frozenset(mounts)), NOW)
    assert [v.run for v in found] == hit


def test_a_run_that_is_hit_by_name_is_told_once_not_once_more_for_its_node() -> None:
    both = (standing("filesystem_read_only"), standing("filesystem_read_only", Scope.CHECKPOINTS))
    assert [v.run for v in fault_rule.detect(seen(*both, runs=(run("/data/c"),)), NOW)] == ["r"]
    assert [v.run for v in fault_rule.detect(seen(*both), NOW)] == [""]


@pytest.mark.parametrize(
    ("node", "seconds", "joins"),
    [("a", 60, True), ("", 60, True), ("b", 60, False), ("a", 600, False)],
)
def test_a_nodes_own_fault_joins_what_befell_a_run_there_at_about_the_same_time(node: str, seconds: float, joins: bool) -> None:
    onset = NOW - timedelta(seconds=seconds)
    what: dict[str, Any] = {"key": "k", "detector": "rank_exit", "fault": RANK_CRASH, "run": "r", "attempt": "r-1", "reason": "x"}
    crash = Verdict(**what, onset=onset, node=node, rank=1 if node else None)
    incident = first_transition(crash, "i1", NOW)
    (verdict,) = fault_rule.detect(seen(standing("filesystem_full"), runs=(run(),)), NOW)
    assert (home(verdict, [incident]) is not None) is joins
    (elsewhere,) = fault_rule.detect(seen(standing("filesystem_full"), runs=(run(node="c"),)), NOW)
    assert home(elsewhere, [incident]) is None, "the run has nothing on that node"


# --- the table ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", RULES, ids=lambda r: f"{r.fault.name}-{RULES.index(r)}")
def test_a_row_is_whole(row: Rule) -> None:
    assert row.fault in FAULTS and not row.fault.waits_for
    assert row.family in WATCHED and row.family in FAMILIES
    if isinstance(row.when, tuple):
        assert row.when, "a rule without a condition is always true"
        names = {BY_NAME[m.name][0].name for limit in row.when for m in (limit.metric, limit.of) if m}
        assert names == {row.family.name}, "all limits of a row are read together"
        assert all((limit.bad >= limit.good) is limit.above or limit.bad == limit.good for limit in row.when)
        assert not row.turned or all(limit.view is View.LEVEL for limit in row.when)
        for limit in row.when:
            assert not limit.within or (limit.view is View.INCREASE and f"'{limit.metric.name}' AS metric" in sql("counts_since"))
            assert (limit.view is View.SHARE) <= (limit.of is not None)
    told = row.when.kind.attrs if isinstance(row.when, Happened) else row.family.identity
    assert not row.entity or row.entity in (*told, "rank", "device", "port")
    assert max(row.hold.seconds, row.clear.seconds) <= 60, "longer than a new leader looks back"
    assert row.says and row.cleared


def test_the_leader_looks_at_every_family_of_a_rule_and_at_nodes_and_mounts_and_at_no_other() -> None:
    """No rule is about NFS operations, which are many; what a run's checkpoints lie on is found among the mounts."""
    assert {"host", "mount", "gpu", "gpu_link", "rdma_port", "netdev", "disk_health", "sched_node"} <= {f.name for f in WATCHED}
    assert "nfs_operation" not in {f.name for f in WATCHED}


def test_every_fault_is_covered_or_says_what_it_waits_for_and_never_both() -> None:
    for fault in FAULTS:
        assert bool(covered_by(fault)) is not bool(fault.waits_for), fault.name
    assert covered_by(next(f for f in FAULTS if f.name == "filesystem_full"))[0].startswith("fault_rule: ")
    assert {d.name for d in DETECTORS} >= {c.split(":")[0] for f in FAULTS for c in covered_by(f)} - {"policy"}


# --- from rows to standings --------------------------------------------------------------------


class Rows:
    """A store that answers the watch's questions from lists."""

    def __init__(self) -> None:
        self.readings: list[dict[str, Any]] = []
        self.devices: dict[int, dict[str, str]] = {}
        self.events: list[Event] = []
        self.asked = 0

    def query(self, text: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
        self.asked += 1
        if "DISTINCT family" in text:
            return [{"family": name} for name in {r["family"] for r in self.readings}]
        if "FROM devices" in text:
            return [{"device_id": i, "attrs": self.devices[i]} for i in parameters["ids"] if i in self.devices]
        if "min(ts)" in text:
            return []
        mine = [r for r in self.readings if r["family"] == parameters["family"]]
        return [r for r in mine if parameters["since"] < r["ts"] <= parameters["until"]]

    def read(self, _: type, text: str, parameters: dict[str, Any]) -> list[Event]:
        return [e for e in self.events if e.kind in parameters["kinds"] and parameters["since"] < e.at <= parameters["until"]]

    def host(self, seconds: float, node: str = "a") -> None:
        values = json.dumps([None] * len(HOST.metrics))
        self.readings.append({"family": "host", "device_id": 1, "node": node, "ts": at(seconds), "readings": values})

    def mount(self, seconds: float, free: float | None, number: int = 2) -> None:
        known = [None if free is None else 100, free, 10, 5, 0, 1, 0.1]
        values = json.dumps(known + [None] * (len(MOUNT.metrics) - len(known)))
        self.readings.append({"family": "mount", "device_id": number, "node": "a", "ts": at(seconds), "readings": values})
        self.devices[number] = {"mount_point": f"/m{number}", "type": "ext4"}

    def event(self, seconds: float, kind: str = "ring_overrun", **more: Any) -> None:
        what = {"kind": kind, "layer": "unknown", "severity": "warning", "node": "a", "run": "r", "attempt": "r-1", "rank": 1}
        self.events.append(Event(id=f"e{len(self.events)}", at=at(seconds), **(what | more)))


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def watch(rows: Rows, *rules: Rule) -> Watch:
    return Watch(rows, 10.0, rules or RULES)  # type: ignore[arg-type]


OVERRUN = Rule(
    fault=RANK_CRASH,
    when=Happened(events.RING_OVERRUN, times=3, within=20),
    says="{place}: {count}",
    cleared="quiet",
    clear=Hold(2),
    entity="rank",
)

OVERRUN_ONCE = replace(OVERRUN, when=Happened(events.RING_OVERRUN))


def test_three_events_within_their_time_open_and_two_with_an_older_one_do_not() -> None:
    rows = Rows()
    mine = watch(rows, OVERRUN)
    for seconds in (0, 15, 30):
        rows.event(seconds)
    assert not mine.look(at(31), 0, fresh=True, news=True).raised
    rows.event(34)
    assert len(mine.look(at(35), 4, fresh=True, news=True).raised) == 1
    assert len(mine.look(at(36), 5, fresh=True, news=True).raised) == 1, "the same events once more"


def test_a_rank_is_hit_with_its_run_and_its_attempt_and_two_runs_on_a_node_are_two() -> None:
    rows = Rows()
    mine = watch(rows, OVERRUN_ONCE)
    rows.event(0)
    rows.event(0, run="other", attempt="other-1")
    seen_ = mine.look(at(1), 0, fresh=True, news=True)
    found = fault_rule.detect(replace(seen(), watched=seen_), at(1))
    assert sorted((v.run, v.attempt, v.rank, v.key) for v in found) == [
        ("other", "other-1", 1, "fault_rule/rank_crash|node:a/rank:other/1|other"),
        ("r", "r-1", 1, "fault_rule/rank_crash|node:a/rank:r/1|r"),
    ]
    for seconds in (10, 20):
        rows.host(seconds)
    over = replace(seen(), watched=mine.look(at(21), 20, fresh=True, news=False))
    assert {fault_rule.clears(opened(v), over, at(21)) for v in found} == {"quiet"}


def test_an_event_and_the_quiet_after_it_in_one_look_are_still_told_where_the_quiet_is_not_long_enough() -> None:
    rows = Rows()
    rows.event(0, kind="oom_kill", code="cgroup")
    rows.host(2)
    assert [s.rule.fault.name for s in watch(rows).look(at(3), 0, fresh=True, news=True).raised] == ["host_oom_kill"]
    rows.host(12)
    rows.host(22)
    assert not watch(rows).look(at(23), 0, fresh=True, news=True).raised, "it was over before anybody looked"


def test_a_reading_whose_device_is_not_named_yet_is_judged_once_it_is() -> None:
    rows = Rows()
    rows.mount(0, free=0)
    rows.mount(10, free=0)
    name, rows.devices = rows.devices, {}
    mine = watch(rows)
    assert not mine.look(at(11), 0, fresh=True, news=False).raised
    rows.devices = name
    assert [s.place.value for s in mine.look(at(14), 3, fresh=True, news=False).raised] == ["/m2"]


def test_the_store_is_asked_only_where_there_is_something_new_and_not_more_than_once_a_second() -> None:
    rows = Rows()
    mine = watch(rows)
    asked = []
    for tick in range(8):
        before = rows.asked
        rows.mount(tick / 2, free=50)
        mine.look(at(tick / 2), tick / 2, fresh=tick in (0, 1, 5), news=False)
        asked.append(rows.asked > before)
    assert asked[0], "at the beginning all is new"
    assert asked[1:] == [False, True, False, False, True, False, False], "tick 1 came too soon and was made up for by tick 2"


def test_a_reading_from_before_an_event_does_not_count_as_quiet_after_it() -> None:
    rows = Rows()
    mine = watch(rows, OVERRUN_ONCE)
    rows.event(10)
    mine.look(at(11), 0, fresh=True, news=True)
    for seconds in (1, 9):
        rows.host(seconds)
    assert mine.look(at(13), 2, fresh=True, news=False).raised


def test_a_node_whose_clock_is_half_a_minute_behind_is_judged_too() -> None:
    rows = Rows()
    mine = watch(rows)
    for seconds in (0, 10, 20, 30):
        rows.mount(seconds - 30, free=0)
        seen_ = mine.look(at(seconds), seconds, fresh=True, news=False)
    assert [s.place.value for s in seen_.raised] == ["/m2"]


def test_half_of_a_pass_is_no_missing_mount_and_a_late_reading_changes_no_order() -> None:
    rows = Rows()
    for seconds in (0, 10):
        rows.mount(seconds, free=50)
        rows.mount(seconds, free=50, number=3)
    mine = watch(rows)
    mine.look(at(11), 0, fresh=True, news=False)
    rows.mount(20, free=50)
    seen_ = mine.look(at(21), 10, fresh=True, news=False)
    assert not seen_.raised
    rows.mount(20, free=0, number=3)
    rows.mount(5, free=0, number=3)  # from a spool, long overtaken
    seen_ = mine.look(at(24), 13, fresh=True, news=False)
    assert not seen_.raised and not any(seen_.gone(s) for all_ in seen_.standings.values() for s in all_)


def test_what_is_long_gone_is_forgotten() -> None:
    rows = Rows()
    rows.mount(0, free=50)
    rows.mount(0, free=50, number=3)
    mine = watch(rows)
    mine.look(at(1), 0, fresh=True, news=False)
    for seconds in range(10, 900, 10):
        rows.mount(seconds, free=50)
        seen_ = mine.look(at(seconds + 1), seconds, fresh=True, news=False)
    assert {place for _, place in seen_.standings} == {"node:a/mount_point:/m2"}
    assert seen_.mounts == {"a": frozenset({"/m2"})}


def test_of_two_rows_that_show_one_fault_the_earlier_one_speaks() -> None:
    rows = Rows()
    rows.event(0, kind="oom_kill", code="node", rank=None, run="", message="on a")
    rows.event(0, kind="oom_kill", code="cgroup", rank=None, message="in control group /job of run r")
    found = fault_rule.detect(replace(seen(runs=(run(),)), watched=watch(rows).look(at(1), 0, fresh=True, news=True)), at(1))
    assert [v.reason for v in found] == ["1 process was killed for want of memory: in control group /job of run r"]
