"""The launcher as actuator: an action in state issued is its order (ingest's control answers it), its events are the answer."""

from collections.abc import Iterable

from alerts.recovery.envelope import withdrawn
from alerts.snapshot import Answer, AttemptLook
from alerts.transitions import follow
from pipeline.records import ActionTransition

ANSWERS = {"accepted": "accepted", "done": "succeeded", "failed": "failed", "refused": "failed"}
ORDER = {"accepted": 0, "done": 1, "failed": 1, "refused": 1}


def answered(action: ActionTransition, answers: Iterable[Answer], attempt: AttemptLook | None) -> list[ActionTransition]:
    """The transitions that a launcher's answers make of an issued or accepted action, in order; answers are read once.

    Of several launchers those count that `attempt`, which it is about, was issued for: a spare, or one that was left out, has no say.

    One that was withdrawn, and that the launcher had taken up all the same a moment before, goes on.
    """
    made: list[ActionTransition] = []
    last = action
    nodes = attempt.nodes if attempt else ()
    mine = (a for a in answers if a.action == action.action and a.code in ANSWERS and (not nodes or a.node in nodes))
    for answer in sorted(mine, key=lambda a: (ORDER[a.code], a.at)):
        new_state = ANSWERS[answer.code]
        late = withdrawn(last) and new_state != "failed"
        if last.new_state == "issued" or late or (last.new_state == "accepted" and new_state != "accepted"):
            said = answer.message or answer.code
            last = follow(
                last, new_state, f"refused: {said}" if answer.code == "refused" else said, answer.at, actor=f"launcher:{answer.node}"
            )
            made.append(last)
    return made
