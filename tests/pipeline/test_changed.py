"""What changed since the last good attempt: the difference as a property, the rule for good, and both over a real store."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.sending import wire
from pipeline.catalog.facts import MAX_FACTS, MAX_TEXT, group
from pipeline.changed import (
    Candidate,
    Changed,
    Difference,
    absent,
    compared,
    difference,
    first_look,
    is_good,
    last_good,
    merged,
    only_differing,
    program,
)
from pipeline.clock import utcnow
from pipeline.otlp import decode as otlp
from pipeline.queries.changes_between import changes_between
from pipeline.queries.what_changed import what_changed
from pipeline.records import AttemptFacts, AttemptTransition, Change, Record, RunTransition, Step
from pipeline.store import Store

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


# --- the difference --------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["code.commit", "code.argv", "package.torch", "package.b", "driver.nvidia", "env.NCCL_DEBUG", "env.A", "place.nodes"]
)
SIDES = st.dictionaries(NAMES, st.sampled_from(["1", "2", "3"]))


@given(SIDES, SIDES)
def test_the_differences_turn_one_side_into_the_other(before: dict[str, str], now: dict[str, str]) -> None:
    """Applied to `before` they give `now`, but for a group that one side does not have at all: that is one line for its whole."""
    turned = dict(before)
    for d in difference(before, now):
        if d.name.endswith(".all"):
            turned = {k: v for k, v in turned.items() if group(k) != group(d.name)}
            turned |= {k: v for k, v in now.items() if group(k) == group(d.name)}
        elif d.now is None:
            assert turned.pop(d.name) == d.before
        else:
            assert turned.get(d.name) == d.before
            turned[d.name] = d.now
    assert turned == now


@given(SIDES, SIDES)
def test_a_difference_seen_from_the_other_side_is_the_same_reversed(before: dict[str, str], now: dict[str, str]) -> None:
    there, back = difference(before, now), difference(now, before)
    assert [(d.name, d.now, d.before) for d in there] == [(d.name, d.before, d.now) for d in back]


@given(SIDES)
def test_nothing_differs_from_itself(facts: dict[str, str]) -> None:
    assert difference(facts, dict(facts)) == []


def test_code_comes_first_then_packages_driver_and_environment() -> None:
    before = {
        "env.NCCL_DEBUG": "INFO",
        "package.torch": "2.8",
        "package.apex": "1",
        "driver.nvidia": "550",
        "code.argv": "a",
        "code.commit": "1",
    }
    before |= {"start.resumed_from": "the start", "place.nodes": "n1"}
    found = difference(before, {name: value + "x" for name, value in before.items()})
    assert [d.name for d in found] == [
        "code.commit",
        "code.argv",
        "package.torch",
        "package.apex",
        "driver.nvidia",
        "env.NCCL_DEBUG",
        "place.nodes",
        "start.resumed_from",
    ]


def test_packages_that_could_not_be_read_are_one_line_and_not_all_removed() -> None:
    before = {f"package.p{n}": "1" for n in range(300)}
    assert difference(before, {"package.trouble": "python3: it was not done in time"}) == [
        Difference("package.all", "300 recorded", "python3: it was not done in time")
    ]
    assert difference(before, {}) == [Difference("package.all", "300 recorded", None)]
    assert difference(before, {k: v for k, v in before.items() if k != "package.p7"}) == [Difference("package.p7", "1", None)]


def test_an_unset_variable_is_known_to_be_unset_but_a_missing_commit_is_not_known() -> None:
    assert (absent("env.NCCL_DEBUG"), absent("package.apex"), absent("code.commit")) == ("not set", "not installed", "not known")


def test_of_two_long_command_lines_the_words_that_differ_are_shown() -> None:
    before = "torchrun --nproc-per-node 8 train.py --lr 1e-4 --seed 7 --bf16"
    now = "torchrun --nproc-per-node 8 train.py --lr 3e-4 --seed 7 --bf16 --compile"
    assert only_differing(before, now) == ("… 1e-4 …", "… 3e-4 … --compile")


def test_facts_of_all_nodes_are_one_where_they_agree_and_name_the_nodes_where_not() -> None:
    def row(node: str, minute: float, **facts: str) -> AttemptFacts:
        return AttemptFacts(run="r", attempt="r-1", node=node, at=at(minute), facts={k.replace("_", "."): v for k, v in facts.items()})

    rows = [row("n2", 0, driver_nvidia="570"), row("n1", 0, driver_nvidia="old"), row("n1", 1, driver_nvidia="550", package_torch="2.9")]
    rows += [row("n3", 0, driver_nvidia="570", package_torch="2.9")]
    assert merged(rows) == {
        "driver.nvidia": "550 on n1; 570 on n2, n3",
        "package.torch": "2.9 on n1, n3; not installed on n2",
        "place.nodes": "n1, n2, n3",
    }
    assert merged([]) == {}


def rows(attempt: str, **nodes: Mapping[str, str]) -> list[AttemptFacts]:
    return [AttemptFacts(run="r", attempt=attempt, node=node, at=at(0), facts=dict(facts)) for node, facts in nodes.items()]


def test_other_nodes_with_the_same_on_them_differ_by_the_nodes_alone() -> None:
    """Each node has a command line of its own here, as where a node's rank stands in it: one that left takes its text along."""
    first, second = {"code.argv": "train 0", "driver.nvidia": "550"}, {"code.argv": "train 1", "driver.nvidia": "550"}
    before, now = rows("r-1", a=first, b=second), rows("r-2", b=second, c=first)
    assert compared(before, now) == [Difference("place.nodes", "a, b", "b, c")]
    assert first_look(Changed("r", "r-2", candidate("r-1", 0, 50), tuple(compared(before, now)), "")) == (
        "It ran with the same on other nodes: look at the nodes first."
    )


def test_what_only_a_new_node_has_and_what_changed_on_an_old_one_are_told() -> None:
    old = {"driver.nvidia": "550", "package.torch": "2.9"}
    found = compared(rows("r-1", a=old, b=old), rows("r-2", b=old, c={**old, "driver.nvidia": "570"}))
    assert found == [Difference("driver.nvidia", "550", "550 on b; 570 on c"), Difference("place.nodes", "a, b", "b, c")]
    swapped = compared(rows("r-1", a={"env.A": "1"}, b={"env.A": "2"}), rows("r-2", a={"env.A": "2"}, b={"env.A": "1"}))
    assert swapped == [Difference("env.A", "1 on a; 2 on b", "2 on a; 1 on b")]


def test_a_new_node_whose_packages_could_not_be_read_has_lost_none() -> None:
    old = {"package.torch": "2.9", "package.apex": "1"}
    found = compared(rows("r-1", a=old), rows("r-2", a=old, b={"package.trouble": "it was not done in time"}))
    assert names(found) == ["package.trouble", "place.nodes"]


# --- which attempt is good -------------------------------------------------------------------


def candidate(name: str, minute: float, steps: int, code: int | None = None, recorded: bool = True) -> Candidate:
    return Candidate("r", name, at(minute), steps, code, recorded)


@pytest.mark.parametrize(
    ("steps", "code", "good"),
    [(0, 0, False), (0, 1, False), (9, 1, False), (9, None, False), (9, 0, True), (1, 0, True), (10, -9, True), (5000, None, True)],
)
def test_good_is_what_got_beyond_its_first_steps_or_ended_well_after_some(steps: int, code: int | None, good: bool) -> None:
    assert is_good(candidate("a", 0, steps, code)) is good


def test_the_newest_good_attempt_before_counts_if_its_facts_are_kept() -> None:
    old, newer, failed = candidate("old", 0, 500, 1), candidate("newer", 10, 500, 1, recorded=False), candidate("failed", 20, 3, 1)
    later = candidate("later", 40, 900)
    assert last_good([later, failed, newer, old], before=at(30)) == old
    assert last_good([failed], before=at(30)) is None


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("torchrun --nproc-per-node=8 src/train.py --lr 1", "train.py"),
        ("python -m torch.distributed.run --nnodes 2 -m lab.pretrain --lr 1", "lab.pretrain"),
        ("bash launch.sh", "launch.sh"),
        ("sleep 5", "sleep"),
        ("", ""),
    ],
)
def test_a_program_is_its_script_or_module(command: str, name: str) -> None:
    assert program(command) == name


# --- over the store --------------------------------------------------------------------------


class Lab:
    """Writes runs with attempts into a store."""

    def __init__(self, store: Store) -> None:
        self.store, self._count = store, 0

    def put(self, *records: Record) -> None:
        for kind in {type(r) for r in records}:
            self._count += 1
            self.store.insert([r for r in records if type(r) is kind], token=f"lab-{self._count}")

    def run(self, run: str, minute: float, command: str) -> None:
        self.put(RunTransition(old_state="", new_state="started", reason="", actor="t", at=at(minute), run=run, node="n", command=command))

    def attempt(
        self, attempt: str, minute: float, steps: int, code: int | None = None, facts: Mapping[str, str] | None = None, inner: int = 0
    ) -> None:
        run, launch = attempt.rsplit("-", 1)
        common: dict[str, Any] = {"reason": "", "actor": "t", "run": run, "attempt": attempt, "launch": int(launch), "node": "n"}
        rows: list[Record] = [AttemptTransition(old_state="", new_state="issued", at=at(minute - 1), **common)]
        rows += [AttemptTransition(old_state="", new_state="starting", at=at(minute), **common)]
        if code is not None:
            rows.append(AttemptTransition(old_state="running", new_state="ended", at=at(minute + 5), exit_code=code, **common))
        names = [attempt] * (steps - inner) + [f"{attempt}.1"] * inner
        rows += [
            Step(run=run, attempt=a, node="n", rank=rank, step=n, started_at=at(minute + 1), ended_at=at(minute + 2))
            for n, a in enumerate(names)
            for rank in (0, 1)
        ]
        if facts is not None:
            rows.append(AttemptFacts(run=run, attempt=attempt, node="n", at=at(minute), facts=dict(facts)))
        self.put(*rows)

    def changed(self, attempt: str) -> Changed:
        (found,) = what_changed(self.store, attempt.rsplit("-", 1)[0], attempt)
        return found


def names(differences: Sequence[Difference]) -> list[str]:
    return [d.name for d in differences]


@pytest.fixture
def lab(store: Store) -> Lab:
    return Lab(store)


OLD = {
    "code.commit": "aaa first",
    "code.folder": "/work",
    "env.NCCL_DEBUG": "INFO",
    "package.torch": "2.8",
    "start.resumed_from": "the start",
}
NEW = {**OLD, "code.commit": "bbb second", "package.torch": "2.9", "start.resumed_from": "/ckpt/100"}


def test_an_attempt_is_compared_with_the_last_good_one_of_its_run(lab: Lab) -> None:
    """r-2 failed at its third step, so it is no yardstick for r-3, although it is the newer one."""
    lab.run("r", 0, "torchrun train.py")
    lab.attempt("r-1", 1, 200, code=-9, facts=OLD)
    lab.attempt("r-2", 11, 3, code=1, facts=NEW)
    lab.attempt("r-3", 21, 0, facts=NEW)
    found = lab.changed("r-3")
    assert found.good and (found.good.attempt, found.good.steps, found.good.exit_code) == ("r-1", 200, -9)
    assert names(found.differences) == ["code.commit", "package.torch", "start.resumed_from"]
    assert found.differences[0] == Difference("code.commit", "aaa first", "bbb second")
    assert first_look(found) == "The code or its command line changed: look there first."
    assert found.reason == "r-1 is the last good attempt of this run."


def test_an_attempt_on_other_nodes_differs_by_these_alone(lab: Lab) -> None:
    lab.run("r", 0, "torchrun train.py")
    lab.attempt("r-1", 1, 200, code=-9)
    lab.attempt("r-2", 11, 0)
    own = {"a": {"env.CUDA_VISIBLE_DEVICES": "0"}, "b": {"env.CUDA_VISIBLE_DEVICES": "1"}}
    lab.put(*rows("r-1", **own), *rows("r-2", b=own["b"], c=own["a"]))
    found = lab.changed("r-2")
    assert found.differences == (Difference("place.nodes", "a, b", "b, c"),)
    assert first_look(found) == "It ran with the same on other nodes: look at the nodes first."


def test_steps_of_inner_restarts_count_for_their_attempt_and_an_inner_restart_has_its_attempt_s_answer(lab: Lab) -> None:
    lab.run("r", 0, "torchrun train.py")
    lab.attempt("r-1", 1, 12, code=1, facts=OLD, inner=6)
    lab.attempt("r-2", 11, 12, facts=OLD)
    found = lab.changed("r-2")
    assert found.good and found.good.steps == 12
    assert found.differences == ()
    assert first_look(found).startswith("Nothing that is recorded differs")
    assert what_changed(lab.store, "r", "r-2.1") == [found]


def test_a_first_attempt_is_compared_with_the_run_of_the_same_command_before(lab: Lab) -> None:
    lab.run("a", 0, "torchrun train.py --lr 1")
    lab.attempt("a-1", 1, 50, code=0, facts=OLD)
    lab.run("other", 30, "torchrun eval.py")
    lab.attempt("other-1", 31, 50, code=0, facts=NEW)
    lab.run("b", 60, "torchrun train.py --lr 1")
    lab.attempt("b-1", 61, 0, code=1, facts=NEW)
    found = lab.changed("b-1")
    assert found.good and found.good.attempt == "a-1"
    assert found.reason == "a-1 is the last good attempt of an earlier run of the same command."


def test_that_each_run_writes_to_a_folder_of_its_own_name_is_no_change(lab: Lab) -> None:
    lab.run("kill-1c36eb", 0, "python train.py --out /data/kill-1c36eb")
    lab.attempt("kill-1c36eb-1", 1, 50, code=0, facts={**OLD, "code.argv": "python train.py --out /data/kill-1c36eb --lr 1"})
    lab.run("hang-917683", 60, "python train.py --out /data/hang-917683")
    lab.attempt("hang-917683-1", 61, 0, code=1, facts={**OLD, "code.argv": "python train.py --out /data/hang-917683 --lr 1"})
    found = lab.changed("hang-917683-1")
    assert found.good and found.good.attempt == "kill-1c36eb-1" and "code.argv" not in names(found.differences)
    lab.run("b", 90, "python train.py --out /data/b")
    lab.attempt("b-1", 91, 0, code=1, facts={**OLD, "code.argv": "python train.py --out /data/b --lr 2"})
    assert names(lab.changed("b-1").differences)[0] == "code.argv", "another option is"


@pytest.mark.parametrize("folder", ["/work", "/elsewhere"])
def test_else_with_a_run_of_the_same_program_in_the_same_folder(lab: Lab, folder: str) -> None:
    lab.run("a", 0, "torchrun train.py --lr 1")
    lab.attempt("a-1", 1, 50, code=0, facts=OLD)
    lab.run("b", 60, "torchrun train.py --lr 2")
    lab.attempt("b-1", 61, 0, code=1, facts={**NEW, "code.folder": folder})
    found = lab.changed("b-1")
    if folder == "/work":
        assert found.good and found.good.attempt == "a-1" and "train.py in the same folder" in found.reason
    else:
        assert found.good is None and found.reason == "No good attempt before this one is on record: nothing to compare with yet."
        assert first_look(found) == ""


def test_a_run_that_began_later_is_never_compared_with(lab: Lab) -> None:
    lab.run("b", 0, "torchrun train.py")
    lab.attempt("b-1", 1, 0, facts=NEW)
    lab.run("a", 60, "torchrun train.py")
    lab.attempt("a-1", 61, 50, code=0, facts=OLD)
    assert lab.changed("b-1").good is None


def test_an_attempt_without_facts_says_so_and_an_unknown_one_is_no_attempt(lab: Lab) -> None:
    lab.run("r", 0, "x")
    lab.attempt("r-1", 1, 50)
    assert "is not recorded" in lab.changed("r-1").reason
    assert what_changed(lab.store, "r", "r-9") == []


def test_changes_of_a_period_come_newest_first_and_a_repeated_one_once(lab: Lab) -> None:
    def change(ident: str, minute: float) -> Change:
        return Change(id=ident, at=at(minute), kind="deploy", what=f"image {ident}", actor="ci", nodes="")

    lab.put(change("1", 0), change("2", 10), change("3", 20), change("4", 30))
    lab.put(change("2", 10))
    assert [c.id for c in changes_between(lab.store, at(10), at(30))] == ["3", "2"]


# --- what may come in ------------------------------------------------------------------------


def sent(name: str, record: Record) -> Any:
    body = wire.logs_request(wire.resource({"host.name": "n"}), [wire.encode_record(name, record)])
    return otlp.decode(otlp.Signal.LOGS, otlp.ContentType.PROTOBUF, body, utcnow())


@pytest.mark.parametrize(
    "facts",
    [{f"package.{n}": "1" for n in range(MAX_FACTS + 1)}, {"code.argv": "x" * (MAX_TEXT + 1)}, {"x" * 300: ""}],
    ids=["many", "long", "name"],
)
def test_facts_beyond_their_limits_are_refused(facts: dict[str, str]) -> None:
    found = sent("surefoot.facts", AttemptFacts(run="r", attempt="r-1", node="n", at=utcnow(), facts=facts))
    assert (found.rejected, found.records) == (1, {})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"kind": "whim"}, "none of deploy, driver, config, code"),
        ({"what": " "}, "1 to 500 characters"),
        ({"what": "x" * 501}, "1 to 500 characters"),
        ({"at": utcnow() + timedelta(hours=1)}, "ahead"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_with_the_reason(given: dict[str, Any], why: str) -> None:
    found = sent("surefoot.change", Change(**{"id": "1", "at": utcnow(), "kind": "deploy", "what": "x", "actor": "a"} | given))
    assert found.rejected == 1 and why in found.message()


def test_a_node_s_name_is_folded() -> None:
    (change,) = sent("surefoot.change", Change(id="1", at=utcnow(), kind="driver", what="x", actor="a", nodes="GPU-07,b")).records[Change]
    assert change.nodes == "gpu-07,b"
