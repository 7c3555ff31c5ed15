"""Every recovery action, once: what it does, what it may hit, and its mode where the settings are silent."""

from dataclasses import dataclass

from pipeline.catalog.layers import ActionMode


@dataclass(frozen=True, slots=True)
class ActionKind:
    """A kind of action. `deadline` is how long an accepted one may take before it counts as failed (seconds)."""

    name: str
    default_mode: ActionMode
    deadline: float
    help: str


RESTART_RUN = ActionKind(
    "restart_run",
    ActionMode.AUTO,
    120.0,
    "Stop every rank of the attempt and start the next one in place from the last complete checkpoint",
)
CAPTURE = ActionKind("capture", ActionMode.AUTO, 30.0, "Take stacks, flight recorder and live cells of every rank; hurts nothing")
STOP_RUN = ActionKind("stop_run", ActionMode.APPROVE, 60.0, "Stop the run and do not start it again")
END_RUN = ActionKind(
    "end_run", ActionMode.AUTO, 30.0, "Let the launcher of a failed attempt end with its command's exit code: no restart is due"
)

ACTIONS: tuple[ActionKind, ...] = (RESTART_RUN, CAPTURE, STOP_RUN, END_RUN)
BY_NAME: dict[str, ActionKind] = {a.name: a for a in ACTIONS}
