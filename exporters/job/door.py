"""Where a launcher that has begun nothing waits while the control plane takes another one for it.

The other one may have ended a moment ago: then we are let in within some seconds. It may live: then we must not begin,
or every attempt would be made twice.
"""

from collections.abc import Callable
from typing import Final

import structlog

from exporters.job.control import Poller
from exporters.job.journal import Journal
from exporters.job.loop import Loop
from exporters.job.outcome import End, Next
from pipeline.catalog.runs import ASKS
from pipeline.clock import monotonic
from pipeline.errors import ControlRefused

PATIENCE: Final = ASKS + 1.0  # seconds: for as long one that is gone is counted on, and until we have asked again
_LOOK: Final = 0.05  # seconds between two looks
_log = structlog.get_logger()


def first(poller: Poller, loop: Loop, journal: Journal, turn: Callable[[float], None], patience: float) -> Next | End | None:
    """The first attempt of a launcher alone; None where none was issued within `patience` seconds. Raises ControlRefused."""
    poller.start()
    deadline = monotonic() + patience
    while monotonic() < deadline:
        if wait_at_the_door(poller, loop, turn):
            deadline = monotonic() + patience
        journal.speaks = poller.heard and not poller.taken  # one that is refused has nothing to say of the run
        journal.run_is("started", "surefoot run")
        if number := loop.asked_to_end:
            return End(-number, f"ended by {number.name} before it was started", asked=True)
        if issued := loop.issued:
            journal.attempt_issued(issued.attempt)
            return Next(issued)
        turn(min(_LOOK, deadline - monotonic()))
    return None


def wait_at_the_door(poller: Poller, loop: Loop, turn: Callable[[float], None]) -> bool:
    """Returns once nothing keeps us out, or somebody asks us to end; says whether we had to wait.

    Raises ControlRefused with what to do where we are kept out for too long, and at once where the run is begun otherwise.
    A control plane that falls silent meanwhile lets nobody in: what it told last holds.
    """
    if not poller.taken:
        return False
    loop.issued = None  # the other one's by now
    if poller.barred:
        raise ControlRefused(f"nothing was begun: {poller.taken}", taken=True)
    _log.warning("waiting for the other launcher to end", why=poller.taken, at_most=f"{PATIENCE:g} s")
    deadline = monotonic() + PATIENCE
    while why := poller.taken:
        if loop.asked_to_end:
            break
        if poller.barred or monotonic() >= deadline:
            raise ControlRefused(f"nothing was begun: {why}", taken=True)
        turn(_LOOK)
    _log.info("not waiting for the other launcher any more")
    return True
