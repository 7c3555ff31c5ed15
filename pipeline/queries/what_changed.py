"""What differs between an attempt and the last good one before it."""

from collections.abc import Sequence

from pipeline.changed import Candidate, Changed, as_run, compared, last_good, merged, program, same_folder
from pipeline.queries import sql
from pipeline.queries.attempt_facts import attempt_facts
from pipeline.queries.runs_before import EarlierRun, runs_before
from pipeline.store import Store

_RUNS_LOOKED_AT = 500
_ALIKE = 20  # runs of the same command that are looked into


def what_changed(store: Store, run: str, attempt: str) -> list[Changed]:
    """One answer for `attempt` of `run` (a restart inside an attempt has its facts); empty where there is no such attempt.

    It is compared with the last good attempt (`pipeline.changed.is_good`) before it: of this run; else of the
    newest earlier run of exactly the same command; else of one of the same program that was started in the same folder.
    """
    own = _candidates(store, [run])
    target = next((c for c in own if c.attempt in (attempt, attempt.rpartition(".")[0])), None)
    if target is None:
        return []
    if not target.recorded:
        return [
            Changed(run, target.attempt, None, (), f"What {target.attempt} ran with is not recorded: it is within a minute of its start.")
        ]
    good = last_good(own, target.began_at)
    why = "the last good attempt of this run"
    if good is None:
        good, why = _elsewhere(store, target)
    if good is None:
        return [Changed(run, target.attempt, None, (), why)]
    before, now = as_run(attempt_facts(store, [good.attempt]), run), attempt_facts(store, [target.attempt])
    return [Changed(run, target.attempt, good, tuple(compared(before, now)), f"{good.attempt} is {why}.")]


def _elsewhere(store: Store, target: Candidate) -> tuple[Candidate | None, str]:
    me, *earlier = runs_before(store, target.run, _RUNS_LOOKED_AT) or [EarlierRun(target.run, "")]
    exact = [r.run for r in earlier if r.command == me.command][:_ALIKE]
    if exact and (good := last_good(_candidates(store, exact), target.began_at)):
        return good, "the last good attempt of an earlier run of the same command"
    alike = [r.run for r in earlier if program(r.command) == program(me.command)][:_ALIKE]
    if alike and (good := last_good(_candidates(store, alike), target.began_at)):
        if same_folder(_facts(store, good.attempt), _facts(store, target.attempt)):
            return good, f"the last good attempt of an earlier run of {program(me.command)} in the same folder"
    return None, "No good attempt before this one is on record: nothing to compare with yet."


def _candidates(store: Store, runs: Sequence[str]) -> list[Candidate]:
    return [Candidate(**row) for row in store.query(sql("what_changed"), {"runs": list(runs)})]


def _facts(store: Store, attempt: str) -> dict[str, str]:
    return merged(attempt_facts(store, [attempt]))
