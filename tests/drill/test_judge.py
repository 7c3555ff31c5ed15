"""A drill's judgement: every wrong thing once, and nothing that only follows from another."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from surefoot.drill.judge import judge
from surefoot.drill.plan import End, Located, Plan, Result, Truth

NOW = datetime(2026, 10, 1, 12, tzinfo=UTC)
PLACE = Located("framework", "n1", 1)
MENDED, GAVE_UP = End(resolved=True, finished=True, gave_up=False), End(resolved=False, finished=False, gave_up=True)
PLAN = Plan("kill", timeout=20.0)


def result(**changes: Any) -> Result:
    right = Result(PLAN, "r", Truth(NOW, "r-1", PLACE, "forward"), incident="i", attempt="r-1", located=PLACE, seconds={"recover": 5.0})
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
