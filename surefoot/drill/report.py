"""A drill's result as text for a person and as one line of JSON for a script."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pipeline.settings import AgentSettings
from surefoot.drill.cost import Cost
from surefoot.drill.kinds.registry import BY_NAME
from surefoot.drill.plan import Located, Result

MENDED = {"detected": "detect", "paged": "page", "located": "locate", "acted": "act", "recovered": "recover"}
REMOVED = {"detected": "detect", "paged": "page", "located": "locate", "removed": "remove", "resolved": "recover"}


def as_text(result: Result) -> str:
    """A short summary; what was wrong comes last."""
    told = MENDED if result.truth.mended_by_action else REMOVED
    lines = [
        "",
        "   ".join(f"{word} {_s(result.seconds.get(key))}" for word, key in told.items()),
        f"cold start {_s(result.cold_start)}   goodput {'no data' if result.goodput is None else f'{result.goodput:.1%}'}",
        *_replaced(result),
        result.loss,
    ]
    if result.unseen:
        fault = result.truth.fault
        lines[1:2], lines[-1:] = [], [f"not detected yet: {fault.name} ({fault.summary}) would name it, and waits for {fault.waits_for}"]
    elif interval := BY_NAME[result.plan.kind].agent_interval:
        lines.append(f"the agent took its readings every {interval:g} s here; by default it does every {AgentSettings().interval:g} s")
    lines += [f"WRONG: {w}" for w in result.wrong] or ([] if result.unseen else ["all right"])
    return "\n".join(lines)


def _replaced(result: Result) -> list[str]:
    """Which node the run went on without, and which spare took its place."""
    if not result.left_out:
        return []
    taken = f"the spare {', '.join(result.taken_in)} was taken in" if result.taken_in else "nobody took its place"
    return [f"{', '.join(result.left_out)} was left out, {taken}"]


def _s(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.2f} s"


def as_dict(result: Result) -> dict[str, Any]:
    """The result by the names that scripts rely on."""
    located = result.located
    return {
        "drill": result.plan.kind,
        "run": result.run,
        "incident": result.incident,
        "injected_at": result.truth.injected_at.isoformat(),
        "phase": result.truth.phase,
        "attempt": result.attempt,
        "located": None if located is None else {"layer": located.layer, "node": located.node, "rank": located.rank} | _device(located),
        "action": result.action,
        "seconds": {k: None if v is None else round(v, 3) for k, v in result.seconds.items()},
        "cold_start": None if result.cold_start is None else round(result.cold_start, 3),
        "goodput": None if result.goodput is None else round(result.goodput, 6),
        "ledger": {k: round(v, 6) for k, v in result.ledger.items()},
        "loss": result.loss,
        "pages": result.pages,
        "correct": result.correct,
        "wrong": result.wrong,
    } | _further(result)


def _device(located: Located) -> dict[str, str | int | None]:
    return {"device": located.device} if located.device else {}


def _further(result: Result) -> dict[str, Any]:
    """What only some kinds have to tell."""
    fault, interval = result.truth.fault, BY_NAME[result.plan.kind].agent_interval
    unseen = {"not_detected_yet": fault.name, "waits_for": fault.waits_for} if result.unseen else {}
    moved = {"left_out": result.left_out, "taken_in": result.taken_in} if result.left_out or result.taken_in else {}
    return unseen | moved | ({"agent_interval": interval} if interval else {})


def as_json_line(result: Result, costs: Sequence[Cost] = ()) -> str:
    """One JSON object on one line, with `costs` where the drill was compared."""
    compared = {"compare": [asdict(c) for c in costs]} if costs else {}
    return json.dumps(as_dict(result) | compared, ensure_ascii=False)
