"""A drill's result as text for a person and as one line of JSON for a script."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from surefoot.drill.cost import Cost
from surefoot.drill.plan import Result


def as_text(result: Result) -> str:
    """A short summary; what was wrong comes last."""
    told = {"detected": "detect", "paged": "page", "located": "locate", "acted": "act", "recovered": "recover"}
    lines = [
        "",
        "   ".join(f"{word} {_s(result.seconds[key])}" for word, key in told.items()),
        f"cold start {_s(result.cold_start)}   goodput {'no data' if result.goodput is None else f'{result.goodput:.1%}'}",
        result.loss,
    ]
    lines += [f"WRONG: {w}" for w in result.wrong] or ["all right"]
    return "\n".join(lines)


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
        "located": None if located is None else {"layer": located.layer, "node": located.node, "rank": located.rank},
        "action": result.action,
        "seconds": {k: None if v is None else round(v, 3) for k, v in result.seconds.items()},
        "cold_start": None if result.cold_start is None else round(result.cold_start, 3),
        "goodput": None if result.goodput is None else round(result.goodput, 6),
        "ledger": {k: round(v, 6) for k, v in result.ledger.items()},
        "loss": result.loss,
        "pages": result.pages,
        "correct": result.correct,
        "wrong": result.wrong,
    }


def as_json_line(result: Result, costs: Sequence[Cost] = ()) -> str:
    """One JSON object on one line, with `costs` where the drill was compared."""
    compared = {"compare": [asdict(c) for c in costs]} if costs else {}
    return json.dumps(as_dict(result) | compared, ensure_ascii=False)
