"""`surefoot doctor`: what of the fault catalogue can be seen, and what that which cannot waits for."""

import json

from alerts.coverage import covered_by
from pipeline.catalog.faults import FAULTS, Fault


def coverage_text() -> str:
    """A line for each fault, by layer, and the sum."""
    width = max(len(fault.name) for fault in FAULTS)
    lines = []
    for layer in dict.fromkeys(fault.layer for fault in FAULTS):
        lines.append(f"{layer}")
        for fault in sorted((f for f in FAULTS if f.layer is layer), key=lambda f: (bool(f.waits_for), f.name)):
            first, *more = covered_by(fault) or (f"not covered: waits for {fault.waits_for}",)
            lines.append(f"  {fault.name:<{width}}  {first}")
            lines += [f"  {'':<{width}}  {one}" for one in more]
    covered = sum(not fault.waits_for for fault in FAULTS)
    return "\n".join([*lines, f"{covered} of {len(FAULTS)} faults are covered"])


def coverage_json() -> str:
    """The same as one JSON object on one line."""
    return json.dumps({"faults": [_row(fault) for fault in FAULTS]})


def _row(fault: Fault) -> dict[str, object]:
    return {
        "name": fault.name,
        "layer": fault.layer,
        "severity": fault.severity,
        "seen_within": fault.seen_within,
        "first_action": fault.first_action.name if fault.first_action else None,
        "advice": fault.advice,
        "covered_by": list(covered_by(fault)),
        "waits_for": fault.waits_for,
    }
