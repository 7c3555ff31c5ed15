"""A drill's judgement: every wrong thing once, and nothing that only follows from another."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pipeline.catalog import faults
from pipeline.catalog.fault import Fault
from surefoot.drill.judge import judge
from surefoot.drill.plan import End, Located, Plan, Result, Truth

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
PLACE = Located("framework", "n1", 1)
MENDED, GAVE_UP = End(resolved=True, finished=True, gave_up=False), End(resolved=False, finished=False, gave_up=True)
PLAN = Plan("kill", timeout=20.0)


def result(**changes: Any) -> Result:
    truth = Truth(NOW, "r-1", PLACE, "forward", faults.RANK_CRASH)
    right = Result(PLAN, "r", truth, incident="i", fault="rank_crash", attempt="r-1", located=PLACE, seconds={"recover": 5.0})
    right.pages = ["trigger i", "acknowledge i", "resolve i"]
    return replace(right, wrong=[], correct={}, **changes)


def wrong(end: End, **changes: Any) -> list[str]:
    judged = result(**changes)
    judge(judged, end)
    assert judged.right == (not judged.wrong)
    return judged.wrong


def test_what_was_mended_in_time_and_told_is_right() -> None:
    judged = result()
    judge(judged, MENDED)
    assert judged.right
    assert judged.correct == {"detected": True, "located": True, "recovered": True}


def test_a_restart_that_nobody_approved_is_the_only_thing_wrong() -> None:
    assert wrong(GAVE_UP, unapproved=True, pages=["trigger i"], seconds={"recover": None}) == ["nobody approved the restart within 20 s"]


def test_a_fault_that_was_not_mended_in_time_is_called_that_and_its_missing_page_and_end_are_not_told_beside() -> None:
    told = ["not mended within 20 s: the training was stopped"]
    assert wrong(GAVE_UP, pages=["trigger i"], seconds={"recover": None}) == told


def test_a_wrong_place_is_told_whatever_the_end() -> None:
    for end in (MENDED, GAVE_UP):
        assert wrong(end, located=replace(PLACE, rank=0))[0] == f"located at layer framework, node n1, rank 0, injected at {PLACE}"


@pytest.mark.parametrize(
    ("end", "pages", "told"),
    [
        (replace(MENDED, finished=False), ["trigger i", "resolve i"], ["the training did not finish with exit code 0"]),
        (replace(MENDED, resolved=False), ["trigger i", "resolve i"], ["the incident was not resolved, or its pages were not sent"]),
        (
            MENDED,
            ["trigger i", "trigger i", "resolve i"],
            ["pages were ['trigger i', 'trigger i', 'resolve i'], not one trigger and one resolve"],
        ),
    ],
)
def test_each_wrong_thing_of_a_drill_that_came_to_its_end_is_told(end: End, pages: list[str], told: list[str]) -> None:
    assert wrong(end, pages=pages) == told


DISK = Located("storage", "n1", None, "/data/ckpt")


def of_a_disk(**changes: Any) -> Result:
    """A file system that filled, was found, and was well again after the drill had cleared it."""
    truth = Truth(NOW, "", DISK, "", faults.FILESYSTEM_FULL)
    right = Result(Plan("disk-full"), "r", truth, incident="i", fault="filesystem_full", located=DISK)
    right.seconds, right.pages = {"recover": 6.0, "remove": 3.0}, ["trigger i", "resolve i"]
    return replace(right, **changes)


def test_a_nodes_fault_that_was_found_and_over_once_it_was_taken_away_is_right() -> None:
    judged = of_a_disk()
    judge(judged, MENDED)
    assert (judged.wrong, judged.correct) == ([], {"detected": True, "located": True, "recovered": True})
    assert judged.exit_code == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"fault": "mount_hung"}, "found as mount_hung, injected was filesystem_full"),
        ({"incident": "", "fault": "", "pages": []}, "found as nothing, injected was filesystem_full"),
        (
            {"located": replace(DISK, device="/")},
            "located at layer storage, node n1, /, injected at layer storage, node n1, /data/ckpt",
        ),
        ({"others": ["A rank's process died: rank 0"]}, "it opened further incidents: A rank's process died: rank 0"),
        ({"action": "restart_run"}, "restart_run was done, where nothing was to be"),
        ({"seconds": {"recover": None}}, "the incident was resolved before the drill had taken the fault away"),
    ],
)
def test_a_nodes_fault_that_was_taken_for_something_else_is_told(changes: dict[str, Any], told: str) -> None:
    judged = of_a_disk(**changes)
    judge(judged, MENDED)
    assert judged.wrong == [told]
    assert judged.exit_code == 1


def unseen(injected: Fault, **changes: Any) -> Result:
    return replace(Result(Plan("nan"), "r", Truth(NOW, "r-1", PLACE, "forward", injected)), wrong=[], correct={}, **changes)


def test_a_fault_that_nothing_can_find_yet_is_no_failure_but_has_an_exit_code_of_its_own() -> None:
    judged = unseen(faults.BY_NAME["loss_nan"])
    judge(judged, MENDED)
    assert (judged.wrong, judged.correct) == ([], {"detected": False, "located": None, "recovered": None})
    assert judged.exit_code == 3


def test_a_fault_that_nothing_can_find_yet_and_that_broke_the_training_or_was_taken_for_another_is_wrong() -> None:
    broke = unseen(faults.BY_NAME["loss_nan"])
    judge(broke, replace(MENDED, finished=False))
    assert (broke.wrong, broke.exit_code) == (["the training did not finish with exit code 0"], 1)
    taken = unseen(faults.BY_NAME["loss_nan"], incident="i", fault="collective_hang", attempt="r-1", seconds={"recover": None})
    judge(taken, MENDED)
    assert taken.wrong[0] == "found as collective_hang, injected was loss_nan"
    assert taken.exit_code == 1


def test_a_fault_that_nothing_can_find_yet_is_judged_like_any_other_once_something_does() -> None:
    late = unseen(replace(faults.BY_NAME["loss_nan"], waits_for=""), seconds={"recover": None})
    judge(late, MENDED)
    assert late.exit_code == 1
