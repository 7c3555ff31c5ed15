"""Calls that may hang: one thread a key, and nothing old is ever taken for new."""

import threading

from exporters.sources.calls import Calls
from pipeline.clock import monotonic


def test_every_call_that_returns_in_time_is_heard_of_whenever_it_returns() -> None:
    calls: Calls[int] = Calls("t")
    keys = [str(n) for n in range(50)]
    for _ in range(20):
        assert all(calls.begin(key, lambda key=key: int(key)) for key in keys)
        assert calls.wait(keys, monotonic() + 30) == {key: int(key) for key in keys}
        assert calls.idle


def test_what_a_call_raises_is_what_it_gave() -> None:
    calls: Calls[int] = Calls("t")

    def fail() -> int:
        raise OSError("gone")

    calls.begin("a", fail)
    assert str(calls.wait(["a"], monotonic() + 30)["a"]) == "gone"


def test_a_call_that_hangs_is_not_begun_again_and_its_late_answer_is_thrown_away() -> None:
    now = 100.0
    calls: Calls[int] = Calls("t", lambda: now)
    free, left = threading.Event(), threading.Event()

    def hang() -> int:
        free.wait()
        left.set()
        return 1

    assert calls.begin("a", hang)
    assert calls.wait(["a"], now) == {} and calls.hung("a") == 0.0
    now = 107.0
    assert not calls.begin("a", lambda: 2) and calls.hung("a") == 7.0 and not calls.idle
    free.set()
    while not calls.idle:
        left.wait(30)
    assert calls.hung("a") is None
    assert calls.begin("a", lambda: 3)
    assert calls.wait(["a"], now + 30) == {"a": 3}
