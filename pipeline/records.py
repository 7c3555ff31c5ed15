"""What Surefoot keeps, one class a table: a field is a column, and on the wire an attribute of the same name.

Times are aware UTC. Absent is None. Text that does not apply is "". A *transition* is one change of state; the current state
of a thing is its last transition. The SQL that makes the tables stands in `pipeline/migrations`; a test holds the two equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Any, ClassVar, Self, get_args, get_type_hints

from pipeline.clock import from_micros, to_micros
from pipeline.errors import InputError

GOODPUT, MTTR = "goodput", "mttr"  # the figures of slo_results


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A row. `table` is where it is kept."""

    table: ClassVar[str]

    def attributes(self) -> dict[str, Any]:
        """This record as wire attributes: None is left out, times are microseconds since 1970."""
        values = ((f.name, getattr(self, f.name)) for f in fields(self))
        return {k: to_micros(v) if isinstance(v, datetime) else v for k, v in values if v is not None}

    @classmethod
    def from_attributes(cls, given: Mapping[str, Any]) -> Self:
        """The record that `given` describes.

        Raises InputError naming the attribute that is missing, unknown or of the wrong type.
        """
        types = _field_types(cls)  # type: ignore[arg-type]  # mypy takes type[Self] for unhashable
        if unknown := given.keys() - types.keys():
            raise InputError(f"{cls.table}: unknown attribute {min(unknown)!r}")
        values = {k: _convert(cls.table, k, v, types[k]) for k, v in given.items()}
        try:
            return cls(**values)
        except TypeError as e:
            raise InputError(f"{cls.table}: {e.args[0].split('__init__() ')[-1]}") from e


@cache
def _field_types(cls: type[Record]) -> dict[str, type]:
    hints = get_type_hints(cls)
    return {f.name: _bare(hints[f.name]) for f in fields(cls)}


def _bare(hint: Any) -> type:
    """`int` for `int | None`, `dict` for `dict[str, str]`."""
    if isinstance(hint, UnionType):
        hint = next(a for a in get_args(hint) if a is not type(None))
    return getattr(hint, "__origin__", hint)  # type: ignore[no-any-return]


def _convert(table: str, name: str, value: Any, wanted: type) -> Any:
    if wanted is datetime and type(value) is int:
        if not 10**14 < value < 10**16:  # 1973 to 2286 in microseconds: seconds, ms and ns fall outside
            raise InputError(f"{table}: {name}={value} is not a time in microseconds since 1970")
        return from_micros(value)
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        raise InputError(f"{table}: {name} must be {wanted.__name__}, not {type(value).__name__}")
    if isinstance(value, dict) and any(type(v) is not str for v in value.values()):
        raise InputError(f"{table}: every value of {name} must be text")
    return value


# --- what a run is doing ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Record):
    """One rank's step. Phases are seconds spent in each; None where the phase did not occur."""

    table: ClassVar[str] = "steps"
    run: str
    attempt: str
    node: str
    rank: int
    step: int
    started_at: datetime
    ended_at: datetime
    init: float | None = None
    load_checkpoint: float | None = None
    compile: float | None = None
    data: float | None = None
    forward: float | None = None
    backward: float | None = None
    optimizer: float | None = None
    comm_wait: float | None = None
    checkpoint: float | None = None
    eval: float | None = None
    rollout: float | None = None
    reward: float | None = None
    reference: float | None = None
    weight_sync: float | None = None
    loss: float | None = None
    grad_norm: float | None = None
    nonfinite: str = ""  # names of the figures that were NaN or infinite (they are kept as None): "loss,grad_norm"
    tokens: int | None = None
    samples: int | None = None
    flops: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Live(Record):
    """What one rank is doing at `at`, from its live cell and /proc; the last row a rank is its present."""

    table: ClassVar[str] = "live"
    run: str
    attempt: str
    node: str
    rank: int
    at: datetime
    pid: int
    step: int | None = None  # the step in progress, or the last one while between steps
    completed: int | None = None  # the last step completed in this attempt
    phase: str = ""  # "" between phases
    since: datetime | None = None  # when this rank last began or ended a step or phase
    collective: str = ""
    process_state: str = ""  # the letter of /proc/PID/stat, "X" once the process is gone
    cpu_seconds: float | None = None
    overrun: int = 0  # step records overwritten before they were read, since the attempt began


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(Record):
    """Something that happened once. `kind` is a name of the catalogue."""

    table: ClassVar[str] = "events"
    id: str  # minted by who saw it; the same event sent twice carries the same id
    at: datetime
    kind: str
    layer: str
    severity: str
    node: str = ""
    device: str = ""
    run: str = ""
    attempt: str = ""
    rank: int | None = None
    code: str = ""
    message: str = ""
    duration: float | None = None  # seconds up to `at`
    count: int = 1
    attrs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat(Record):
    """A sign of life: of a launcher (with its ranks), or of one of Surefoot's own parts."""

    table: ClassVar[str] = "beats"
    component: str  # launcher, jobs, ingest
    at: datetime
    node: str = ""
    run: str = ""
    attempt: str = ""
    state: str = ""  # launcher: starting, running, stopping, waiting
    launch: int = 0
    ranks: str = ""  # "0:alive:4711,1:exit:-9"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts(Record):
    """What one attempt runs with on one node: its code, packages, drivers and environment (pipeline/catalog/facts.py)."""

    table: ClassVar[str] = "attempt_facts"
    run: str
    attempt: str
    node: str
    at: datetime
    facts: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change(Record):
    """Something that a person or a deploy pipeline changed: what an incident is compared with."""

    table: ClassVar[str] = "changes"
    id: str
    at: datetime  # when it took effect
    kind: str  # deploy, driver, config, code
    what: str
    actor: str
    nodes: str = ""  # "gpu-01,gpu-02"; "" where it is not about single nodes


# --- transitions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition(Record):
    """One change of state: who changed it, when and why."""

    old_state: str
    new_state: str
    reason: str
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTransition(Transition):
    """Written by the launcher; its end by the leader where the launcher is gone and so are its ranks."""

    table: ClassVar[str] = "runs"
    states: ClassVar[tuple[str, ...]] = ("started", "finished", "failed", "stopped")  # stopped: somebody asked it to end
    run: str
    node: str
    command: str = ""
    ranks: int = 0  # 0 while not known yet; a CPU rank counts as one GPU
    checkpoints: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTransition(Transition):
    """Issued by the leader, the rest written by the launcher. An attempt goes through its states in their order, never back."""

    table: ClassVar[str] = "attempts"
    states: ClassVar[tuple[str, ...]] = ("issued", "starting", "running", "stopping", "ended")
    run: str
    attempt: str
    launch: int
    node: str = ""
    ranks: int = 0
    resume_from: str = ""
    exit_code: int | None = None
    action: str = ""  # the action that began or ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingTransition(Transition):
    """A detector's judgement. States: open, cleared."""

    table: ClassVar[str] = "findings"
    finding: str
    key: str  # detector + entity + run, no measured values: finds the open finding
    detector: str
    fault: str
    layer: str
    severity: str
    run: str = ""
    attempt: str = ""
    node: str = ""
    device: str = ""
    rank: int | None = None
    onset: datetime | None = None  # when the fault began, as far as the evidence shows
    evidence: str = "{}"  # JSON: what was seen, with times
    confidence: float = 1.0
    incident: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentTransition(Transition):
    """Findings with one cause. States: open, mitigating, recovering, resolved (alerts/incidents/lifecycle.py)."""

    table: ClassVar[str] = "incidents"
    incident: str  # minted at opening, never changed; the dedup key of its pages
    key: str
    fault: str
    layer: str
    severity: str
    title: str
    run: str = ""
    attempt: str = ""
    node: str = ""
    device: str = ""
    rank: int | None = None
    confidence: float = 1.0
    onset: datetime | None = None
    detected_at: datetime | None = None
    located_at: datetime | None = None
    acted_at: datetime | None = None
    recovered_at: datetime | None = None  # the first step completed by the next attempt
    caught_up_at: datetime | None = None  # back at the step before the failure
    resolved_at: datetime | None = None
    acknowledged_by: str = ""
    next_attempt: str = ""
    merged_into: str = ""  # the incident that turned out to be the same; this one is resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTransition(Transition):
    """States: proposed, waiting (for approval), issued, accepted, succeeded, failed, cancelled, expired, dry_run."""

    table: ClassVar[str] = "actions"
    action: str
    key: str  # idempotency: one action a key
    kind: str
    mode: str
    term: int
    incident: str = ""
    run: str = ""
    attempt: str = ""  # the attempt it acts on
    new_attempt: str = ""
    launch: int = 0  # of the new attempt
    node: str = ""
    grace: float = 0.0  # seconds between SIGTERM and SIGKILL
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationTransition(Transition):
    """States: queued, sent, failed; held where a silence or a maintenance window keeps a trigger back."""

    table: ClassVar[str] = "notifications"
    notification: str
    incident: str
    receiver: str
    event: str  # trigger, acknowledge, resolve
    dedup_key: str
    tries: int = 0


# --- asked for, and measured -----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Record):
    """What a person or the console asks for; the leader carries it out and answers by transitions."""

    table: ClassVar[str] = "requests"
    intent: str  # minted when the button is drawn: pressing twice asks once
    at: datetime
    kind: str  # approve, cancel, acknowledge, stop_run, and those of alerts/silences.py
    target: str  # id of an action, an incident, a run or a hold; of a new hold its matcher
    actor: str
    reason: str = ""
    starts_at: datetime | None = None  # of a new hold
    ends_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry(Record):
    """GPU-seconds of one rank between two times, in one category. Of a segment (run, attempt, part) only the newest generation counts."""

    table: ClassVar[str] = "ledger"
    run: str
    attempt: str  # with the gap after it
    part: int = 0  # of a long attempt: the slice of time that is computed together (slo/ledger_now.py)
    generation: int
    rank: int
    started_at: datetime
    ended_at: datetime
    category: str
    incident: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SloResult(Record):
    """A figure over the window [started_at, ended_at), as known at `at`. Of nothing there is no figure: None, never 0."""

    table: ClassVar[str] = "slo_results"
    figure: str  # GOODPUT (a ratio, 0 to 1) or MTTR (seconds from onset to resolved); slo/figures.py
    window_seconds: int
    at: datetime
    started_at: datetime
    ended_at: datetime
    value: float | None = None  # of mttr the mean
    median: float | None = None
    p90: float | None = None
    catch_up: float | None = None  # mean seconds from onset to the step before the failure
    count: int = 0  # what `value` rests on: incidents resolved in the window, or GPU-seconds that the ledger covers
    open: int = 0  # incidents not resolved by the window's end: they enter no average


REMOTE: dict[str, tuple[type[Record], ...]] = {
    "surefoot.step": (Step,),
    "surefoot.live": (Live,),
    "surefoot.event": (Event,),
    "surefoot.transition": (RunTransition, AttemptTransition),
    "surefoot.facts": (AttemptFacts,),
    "surefoot.change": (Change,),
}
"""What an agent or launcher may send, by OTLP EventName. A transition names its table in the attribute `table`."""

RECORDS: tuple[type[Record], ...] = (
    Step,
    Live,
    Event,
    Beat,
    AttemptFacts,
    Change,
    RunTransition,
    AttemptTransition,
    FindingTransition,
    IncidentTransition,
    ActionTransition,
    NotificationTransition,
    Request,
    LedgerEntry,
    SloResult,
)
