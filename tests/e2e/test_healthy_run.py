"""A healthy run pauses for longer than a stall takes, to compile, checkpoint and evaluate: nothing is raised, all is accounted for."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from pipeline.catalog.layers import Category
from pipeline.clock import to_micros, utcnow
from pipeline.queries.run_transitions import run_transitions
from pipeline.store import Store
from slo.figures import spent
from slo.ledger_now import compute_run
from surefoot.drill import inject
from surefoot.drill import stack as stacks
from surefoot.drill.plan import Plan
from surefoot.drill.stack import Stack

RUN, RANKS, STEPS = "healthy", 2, 60
PAUSE = 6.0  # seconds of each pause: twice the stall floor
PAUSES = {  # one of each: the checkpoint after step 40, the eval after step 50
    Category.COMPILE: ("--compile-seconds", str(PAUSE)),
    Category.CHECKPOINT: ("--checkpoint-seconds", str(PAUSE)),
    Category.EVAL: ("--eval-every", "50", "--eval-seconds", str(PAUSE)),
}
EXTRA = [word for words in PAUSES.values() for word in words]
SETTLED = 3.0  # seconds: several turns of the detectors
PATIENCE = 120.0  # seconds; a ceiling, not an expectation


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """A Surefoot that would restart a run by itself."""
    started = stacks.start(tmp_path / "stack", {"recovery": {"modes": {"restart_run": "auto"}}})
    yield started
    started.stop()


def train(stack: Stack) -> None:
    """The whole training, under `surefoot run`."""
    plan = Plan("kill", steps=STEPS, checkpoint_every=40, ranks=RANKS)  # nothing is killed: the kind is not used
    subject = inject.start(plan, stack, RUN, EXTRA)
    try:
        assert subject.process.wait(PATIENCE) == 0, (subject.out / "train.log").read_text()
    finally:
        subject.stop()


def wait_until_told(store: Store) -> tuple[datetime, datetime]:
    """Begin and end of the run, once both and every step of every rank are in the store, and the detectors had time to look."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        at = {t.new_state: t.at for t in run_transitions(store, RUN)}
        steps = store.query("SELECT uniqExact(rank, step) AS n FROM steps WHERE run = {run:String}", {"run": RUN})[0]["n"]
        if "finished" in at and steps == STEPS * RANKS:
            time.sleep(SETTLED)
            return at["started"], at["finished"]
        time.sleep(0.2)
    raise AssertionError(f"the run is not told to its end: {at}, {steps} steps")


@pytest.mark.slow
def test_a_healthy_run_with_a_long_compile_checkpoint_and_eval_raises_nothing_and_its_ledger_shows_them(stack: Stack) -> None:
    assert PAUSE > stack.settings.detect.stall_floor, "else a pause could not be taken for a stall"
    train(stack)
    store = Store.connect(stack.settings)
    try:
        begin, end = wait_until_told(store)
        for table in ("findings", "incidents", "actions", "notifications"):
            assert store.query("SELECT * FROM {table:Identifier}", {"table": table}) == [], table
        entries = compute_run(store, RUN, utcnow())
    finally:
        store.close()
    assert {entry.attempt for entry in entries} == {f"{RUN}-1"}
    micros = spent(entries)
    assert sum(micros.values()) == (to_micros(end) - to_micros(begin)) * RANKS
    for category in PAUSES:
        assert PAUSE * RANKS <= micros[category] / 1e6 < PAUSE * RANKS * 2, f"{category} in {micros}"
    lost = {Category.UNKNOWN, Category.DETECT, Category.LOCATE, Category.ACT, Category.RESTART, Category.LOST_PROGRESS}
    assert not lost & micros.keys()
