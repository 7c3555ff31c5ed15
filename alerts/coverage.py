"""Which faults of the catalogue are seen, by what, and what the others wait for."""

from alerts.detectors import fault_rule
from alerts.detectors.registry import DETECTORS
from pipeline.catalog.faults import RESTART_LOOP, Fault
from pipeline.catalog.rules import Happened, Limit, Missing, Rule, Scope, View, rules_of

_VIEWS = {View.LEVEL: "", View.INCREASE: "increase of ", View.RATE: "rate of ", View.SHARE: "increase of ", View.RESET: "reset of "}
_SCOPES = {Scope.ANYWHERE: "", Scope.RUN: ", on a node of a run", Scope.CHECKPOINTS: ", where a run's checkpoints lie"}


def covered_by(fault: Fault) -> tuple[str, ...]:
    """What finds `fault`: detectors, and for `fault_rule` each of its rows in words; () where nothing does."""
    found = [d.name for d in DETECTORS if fault in d.faults and d.name != fault_rule.NAME]
    found += [f"{fault_rule.NAME}: {described(rule)}" for rule in rules_of(fault)]
    found += ["policy: the limits on restarts"] if fault is RESTART_LOOP else []
    return tuple(dict.fromkeys(found))  # rows that differ in what they are told of alone read alike


def described(rule: Rule) -> str:
    """A row of the table in words."""
    when = rule.when
    if isinstance(when, Happened):
        often = f"{when.times} times within {when.within:g} s" if when.times > 1 else ""
        what = " ".join(filter(None, ("event", when.kind.name, when.code, ", ".join(sorted(when.codes, key=_number)), often)))
    elif isinstance(when, Missing):
        what = f"a {when.family.name} that is no longer there"
    else:
        what = " and ".join(_limit(limit) for limit in when)
    turned = ", where it was not before" if rule.turned else ""
    return what + turned + _SCOPES[rule.scope]


def _number(code: str) -> tuple[int, str]:
    return (int(code) if code.isdigit() else 0, code)


def _limit(limit: Limit) -> str:
    of = f" / {limit.of.name}" if limit.of else ""
    within = f" within {limit.within:g} s" if limit.within else ""
    return f"{_VIEWS[limit.view]}{limit.metric.name}{of}{within} {'>=' if limit.above else '<='} {limit.bad:g}"
