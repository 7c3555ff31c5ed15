"""What Surefoot keeps, one class a table: a field is a column, and on the wire an attribute of the same name.

Times are aware UTC. Absent is None. Text that does not apply is "". A *transition* is one change of state; the current state
of a thing is its last transition. The SQL that makes the tables stands in `pipeline/migrations`; a test holds the two equal.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from pipeline.record import Record as Record

GOODPUT, MTTR = "goodput", "mttr"  # the figures of slo_results


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
    state: str = ""  # launcher: one of pipeline/catalog/runs.py
    launch: int = 0
    ranks: str = ""  # "0:alive:4711,1:exit:-9"; with its last word WELL of runs.py, where its command had ended well
    nodes: str = ""  # how many its run wants: "2", "2:4"; "" for one
    address: str = ""  # where the other nodes of its run reach it
    waited: float = 0.0  # seconds that it has been waiting to be given an attempt
    resume: str = ""  # the newest complete checkpoint that it sees: "120 /path"


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
    """Written by the launcher, of several by the first node's; its end by the leader where that is gone and so are its ranks."""

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
    """Issued by the leader, the rest written by the launcher of its first node. An attempt goes through its states in order, never back."""

    table: ClassVar[str] = "attempts"
    states: ClassVar[tuple[str, ...]] = ("issued", "starting", "running", "stopping", "ended")
    run: str
    attempt: str
    launch: int
    node: str = ""  # its first: whose launcher speaks for all
    ranks: int = 0
    resume_from: str = ""
    exit_code: int | None = None
    action: str = ""  # the action that began or ended it
    nodes: str = ""  # of several, by node rank: "gpu-01,gpu-02"
    master: str = ""  # the first one's address


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
