"""Was what was done about a fault right? Pure."""

from surefoot.drill.plan import End, Result


def judge(result: Result, end: End) -> None:
    """Hold what was done against what was really injected; what was not right is added to the result in words."""
    if result.unseen:
        result.correct = {"detected": False, "located": None, "recovered": None}
        result.wrong += [] if end.finished else ["the training did not finish with exit code 0"]
        return
    _judge_finding(result)
    result.correct["recovered"] = end.finished and result.seconds["recover"] is not None
    if end.gave_up:  # what follows from that is no fault of its own
        limit = f"within {result.plan.timeout:g} s"
        result.wrong.append(
            f"nobody approved the restart {limit}" if result.unapproved else f"not mended {limit}: the training was stopped"
        )
        return
    _judge_end(result, end)


def _judge_finding(result: Result) -> None:
    """What was found, and what was done about it."""
    truth, wrong = result.truth, result.wrong
    named = result.attempt == truth.attempt
    detected = named and result.fault == truth.fault.name
    located = result.located == truth.located
    result.correct |= {"detected": detected, "located": located}
    if not named:
        wrong.append(f"the incident names attempt {result.attempt or 'none'}, the fault was in {truth.attempt or 'none'}")
    elif not detected:
        wrong.append(f"found as {result.fault or 'nothing'}, injected was {truth.fault.name}")
    if not located:
        wrong.append(f"located at {result.located or 'no place'}, injected at {truth.located}")
    if result.others:
        wrong.append(f"it opened further incidents: {'; '.join(result.others)}")
    if result.action and not truth.mended_by_action:
        wrong.append(f"{result.action} was done, where nothing was to be")


def _judge_end(result: Result, end: End) -> None:
    wrong = result.wrong
    if not end.finished:
        wrong.append("the training did not finish with exit code 0")
    if not end.resolved:
        wrong.append("the incident was not resolved, or its pages were not sent")
    elif not result.truth.mended_by_action and result.seconds["recover"] is None:
        wrong.append("the incident was resolved before the drill had taken the fault away")
    if result.incident and [p.split()[0] for p in result.pages if not p.startswith("acknowledge ")] != ["trigger", "resolve"]:
        wrong.append(f"pages were {result.pages}, not one trigger and one resolve")
