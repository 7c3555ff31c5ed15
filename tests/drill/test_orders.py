"""What a drill asks of its training: by the rank that is meant, once it is asked and until it is no more."""

import math
from datetime import UTC, datetime
from pathlib import Path

from surefoot.drill import orders
from surefoot.drill.orders import Order


def test_without_an_order_nothing_is_done(tmp_path: Path) -> None:
    figures = [1.0, 2.0]
    assert orders.carry_out(tmp_path, 1, 7, figures) == 0.0
    assert figures == [1.0, 2.0] and orders.begun(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_only_the_rank_that_is_meant_is_late_and_says_since_when(tmp_path: Path) -> None:
    orders.give(tmp_path, Order(orders.SLOW, 1, 0.25))
    assert orders.carry_out(tmp_path, 0, 7, []) == 0.0
    assert orders.begun(tmp_path) is None
    before = datetime.now(UTC)
    assert [orders.carry_out(tmp_path, 1, step, []) for step in (7, 8)] == [0.25, 0.25]
    begun = orders.begun(tmp_path)
    assert begun is not None and begun.step == 7 and before <= begun.at <= datetime.now(UTC)
    orders.withdraw(tmp_path)
    orders.withdraw(tmp_path)
    assert orders.carry_out(tmp_path, 1, 9, []) == 0.0


def test_a_batch_is_spoilt_by_one_number(tmp_path: Path) -> None:
    orders.give(tmp_path, Order(orders.NAN, 0))
    figures = [1.0, 2.0]
    assert orders.carry_out(tmp_path, 0, 3, figures) == 0.0
    assert math.isnan(figures[0]) and figures[1] == 2.0
