"""What the state of a run means for a page: whether anything of it still goes on, and what became of its attempts and ranks."""

from dashboard.read import Sheet
from pipeline.queries.run_states import RunState, run_states

ENDED, LOST, NEVER_STARTED = "ended", "lost", "never started"


def find(sheet: Sheet, run: str) -> RunState | None:
    """The run of that name; None where there is none."""
    return next(iter(sheet.rows(run_states, 1, run)), None)


def is_over(run: RunState | None) -> bool:
    """Whether a run is known to be over: it finished, failed or was stopped."""
    return run is not None and run.state != "started"


def attempt_state(told: str, *, over: bool) -> str:
    """The state of an attempt whose launcher told `told` last; `over`: the run, or a newer attempt, says that it cannot go on."""
    if not over or told in (ENDED, ""):
        return told
    return NEVER_STARTED if told == "issued" else LOST
