"""Was what was done about a fault right? Pure."""

from surefoot.drill.plan import End, Result


def judge(result: Result, end: End) -> None:
    """Hold what was done against what was really injected; what was not right is added to the result in words."""
    truth, wrong = result.truth, result.wrong
    detected = bool(result.incident) and result.attempt == truth.attempt
    located = result.located == truth.located
    result.correct = {"detected": detected, "located": located, "recovered": end.finished and result.seconds["recover"] is not None}
    if not detected:
        wrong.append(f"the incident names attempt {result.attempt or 'none'}, the fault was in {truth.attempt}")
    if not located:
        wrong.append(f"located at {result.located or 'no place'}, injected at {truth.located}")
    if end.gave_up:  # what follows from that is no fault of its own
        limit = f"within {result.plan.timeout:g} s"
        wrong.append(f"nobody approved the restart {limit}" if result.unapproved else f"not mended {limit}: the training was stopped")
        return
    if not end.finished:
        wrong.append("the training did not finish with exit code 0")
    if not end.resolved:
        wrong.append("the incident was not resolved, or its pages were not sent")
    if result.incident and [p.split()[0] for p in result.pages if not p.startswith("acknowledge ")] != ["trigger", "resolve"]:
        wrong.append(f"pages were {result.pages}, not one trigger and one resolve")
