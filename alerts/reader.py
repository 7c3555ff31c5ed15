"""From rows to a Snapshot, with as few queries as the moment needs: one while nothing runs, three while all is well,
and one more where there are new readings of nodes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from alerts.ages import Ages
from alerts.fold import attempts_of, run_look
from alerts.snapshot import Answer, AttemptLook, LauncherLook, Pace, RankExit, RankLook, RunLook, Snapshot
from alerts.watch import Watch
from alerts.watched import Watched
from pipeline.catalog.events import ACTION_PROGRESS, COMMAND_EXITED, RANK_EXITED
from pipeline.queries.agents_now import agents_now
from pipeline.queries.attempts_of_runs import attempts_of_runs
from pipeline.queries.attempts_stepped import attempts_stepped
from pipeline.queries.beats_now import beats_now
from pipeline.queries.launcher_news import launcher_news
from pipeline.queries.live_now import live_now
from pipeline.queries.phases_longest import phases_longest
from pipeline.queries.pulse import Pulse, pulse
from pipeline.queries.runs_watched import runs_watched
from pipeline.queries.step_pace import step_pace
from pipeline.records import Beat, Event, Live
from pipeline.settings import Settings
from pipeline.store import Store

LAUNCHERS = timedelta(seconds=30)  # a launcher that asks was heard in this time
RECENT = timedelta(minutes=10)  # a run that ended is looked at for so long
ABANDONED = timedelta(hours=1)  # without any sign of life, a run is nobody's
NEWS = timedelta(days=1)
LIVE = timedelta(minutes=2)
AHEAD = timedelta(seconds=5)  # a row from further in the future was written by a clock that ran ahead
PACE_SECONDS = 10.0
AGENTS_SECONDS = 2.0
INGEST_SILENT = 6.0  # seconds; it beats every 2


class Reader:
    """Reads snapshots. What it keeps between them is only what saves queries, and the ages."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store, self._settings = store, settings
        self._ages = Ages()
        self._watch = Watch(store, settings.agent.interval)
        self._watched = Watched()
        self._pulse: Pulse | None = None
        self._named: frozenset[str] = frozenset()
        self._runs: tuple[RunLook, ...] = ()
        self._news: list[Event] = []
        self._stepped: set[str] = set()
        self._live: dict[tuple[str, int], Live] = {}
        self._agents: Mapping[str, datetime] = {}
        self._agents_due = 0.0
        self._pace: dict[str, Pace] = {}
        self._pace_due: dict[str, float] = {}
        self._ingest_since: float | None = None
        self.requests_changed = True

    def read(self, now: datetime, monotonic: float, named: Iterable[str] = ()) -> Snapshot:
        """What is there at `now`, with the runs `named` besides those in progress. Raises StoreError."""
        wanted = frozenset(named)
        before, self._pulse = self._pulse, None  # a read that fails must not look like one that saw no change
        here = pulse(self._store, now - LAUNCHERS)
        self.requests_changed |= before is None or before.requests != here.requests
        changed = before is None or (before.runs, before.attempts) != (here.runs, here.attempts) or wanted != self._named
        if changed:
            self._read_runs(now, wanted)
        if self._runs and (changed or before is None or before.events != here.events):
            self._read_news(now)
        fresh, news = (before is None or before.readings != here.readings), (before is None or before.events != here.events)
        self._watched = self._watch.look(now, monotonic, fresh=fresh, news=news)
        active = [r.run for r in self._runs if r.state == "started"]
        if active or here.launchers:
            snapshot = self._look(now, monotonic, active)
        else:
            snapshot = self._bare(now, self._runs)
        self._pulse, self._named = here, wanted
        return snapshot

    def _look(self, now: datetime, monotonic: float, active: Sequence[str]) -> Snapshot:
        beats = beats_now(self._store, now - ABANDONED)
        rows = live_now(self._store, active, now - LIVE, now + AHEAD) if active else []
        self._read_agents(now, monotonic)
        self._ages.begin(monotonic)
        launchers = tuple(self._launcher(b, now) for b in beats if b.component == "launcher")
        runs = tuple(run_look(r, launchers, now, ABANDONED) for r in self._runs)
        ranks = self._ranks(rows, {a.attempt for r in runs for a in r.attempts if _recent(a, now)}, now)
        self._read_pace([r.run for r in ranks], now, monotonic)
        return replace(
            self._bare(now, runs),
            ranks=ranks,
            launchers=launchers,
            agents={node: self._ages.of(("agent", node), at, _seconds(now, at)) for node, at in self._agents.items()},
            pace=dict(self._pace),
            ingest_steady=self._ingest(beats, now, monotonic),
        )

    def _bare(self, now: datetime, runs: tuple[RunLook, ...]) -> Snapshot:
        return Snapshot(
            now=now,
            detect=self._settings.detect,
            agent_interval=self._settings.agent.interval,
            runs=runs,
            stepped_attempts=frozenset(self._stepped),
            exits=self._exits(),
            answers=self._answers(),
            watched=self._watched,
        )

    def _read_news(self, now: datetime) -> None:
        runs = [r.run for r in self._runs]
        self._news = launcher_news(self._store, runs, now - NEWS)
        over = {a.attempt for r in self._runs for a in r.attempts if a.state == "ended"} | {e.attempt for e in self._exits()}
        if unknown := over - self._stepped:
            self._stepped |= attempts_stepped(self._store, runs, sorted(unknown))

    def _read_runs(self, now: datetime, named: frozenset[str]) -> None:
        watched = runs_watched(self._store, now - RECENT, sorted(named))
        transitions = attempts_of_runs(self._store, [w.run for w in watched]) if watched else []
        self._runs = tuple(
            RunLook(
                run=w.run,
                node=w.node,
                state=w.state,
                started_at=w.started_at,
                changed_at=w.changed_at,
                exit_code=w.exit_code,
                reason=w.reason,
                checkpoints=w.checkpoints,
                attempts=attempts_of([t for t in transitions if t.run == w.run]),
            )
            for w in watched
        )

    def _read_agents(self, now: datetime, monotonic: float) -> None:
        if monotonic >= self._agents_due:
            self._agents = agents_now(self._store, now - RECENT)
            self._agents_due = monotonic + AGENTS_SECONDS

    def _read_pace(self, runs: Iterable[str], now: datetime, monotonic: float) -> None:
        """Every run's pace, now and then: a run is slow to change."""
        for run in dict.fromkeys(runs):
            if monotonic < self._pace_due.get(run, 0.0):
                continue
            pace = step_pace(self._store, run, now - ABANDONED)
            if pace.steps < 100:  # long steps: look further back
                pace = step_pace(self._store, run, now - NEWS)
            phases = phases_longest(self._store, run, now - NEWS)
            self._pace[run] = Pace(steps=pace.steps, median=pace.median, p99=pace.p99, longest=pace.longest, phases=phases)
            self._pace_due[run] = monotonic + (PACE_SECONDS if pace.steps >= 100 else AGENTS_SECONDS)

    def _launcher(self, beat: Beat, now: datetime) -> LauncherLook:
        return LauncherLook(
            run=beat.run,
            node=beat.node,
            attempt=beat.attempt,
            state=beat.state,
            launch=beat.launch,
            ranks=beat.ranks,
            at=beat.at,
            age=self._ages.of(("launcher", beat.run, beat.node), beat.at, _seconds(now, beat.at)),
            nodes=beat.nodes,
            address=beat.address,
            waited=beat.waited,
            resume=beat.resume,
        )

    def _ranks(self, rows: Iterable[Live], attempts: set[str], now: datetime) -> tuple[RankLook, ...]:
        """The last row of each rank of `attempts`; one that is no longer among the rows stays as it was last seen."""
        newest: dict[tuple[str, int], Live] = {}
        for row in [*self._live.values(), *rows]:
            attempt = _outer(row.attempt, attempts)
            if attempt is not None and ((attempt, row.rank) not in newest or newest[attempt, row.rank].at <= row.at):
                newest[attempt, row.rank] = row
        self._live = newest
        return tuple(self._rank(attempt, row, now) for (attempt, _), row in newest.items())

    def _rank(self, attempt: str, row: Live, now: datetime) -> RankLook:
        key = (row.attempt, row.rank)
        return RankLook(
            run=row.run,
            attempt=attempt,
            node=row.node,
            rank=row.rank,
            step=row.step,
            completed=row.completed,
            phase=row.phase,
            collective=row.collective,
            process_state=row.process_state,
            at=row.at,
            still=None if row.since is None else self._ages.of(("since", key), row.since, _seconds(now, row.since)),
            still_at_look=None if row.since is None else _seconds(row.at, row.since),
            seen_age=self._ages.of(("at", key), row.at, _seconds(now, row.at)),
            state_age=self._ages.of(("state", key), row.process_state, _seconds(now, row.at)),
        )

    def _ingest(self, beats: Iterable[Beat], now: datetime, monotonic: float) -> float | None:
        """Seconds for which ingest has been heard without a break; None where it is not heard."""
        ages = [self._ages.of(("ingest", b.node), b.at, _seconds(now, b.at)) for b in beats if b.component == "ingest"]
        if not ages or min(ages) > INGEST_SILENT:
            self._ingest_since = None
            return None
        if self._ingest_since is None:
            self._ingest_since = monotonic
        return monotonic - self._ingest_since

    def _exits(self) -> tuple[RankExit, ...]:
        known = {a.attempt for r in self._runs for a in r.attempts}
        return tuple(
            RankExit(
                run=e.run,
                attempt=_outer(e.attempt, known) or e.attempt,
                node=e.node,
                rank=e.rank,
                at=e.at,
                code=e.code,
                signal=e.attrs.get("signal", ""),
                stopped_by=e.attrs.get("stopped_by", ""),
                error=e.attrs.get("error", ""),
            )
            for e in self._news
            if e.kind in (RANK_EXITED.name, COMMAND_EXITED.name)
        )

    def _answers(self) -> tuple[Answer, ...]:
        return tuple(
            Answer(action=e.attrs.get("action", ""), code=e.code, at=e.at, node=e.node, message=e.message)
            for e in self._news
            if e.kind == ACTION_PROGRESS.name
        )


def _outer(attempt: str, known: set[str]) -> str | None:
    """The launcher's attempt that a rank's attempt is, or lies in: torchrun's own restart makes `<attempt>.<n>` of it."""
    if attempt in known:
        return attempt
    outer, _, inner = attempt.rpartition(".")
    return outer if inner.isdigit() and outer in known else None


def _recent(attempt: AttemptLook, now: datetime) -> bool:
    return attempt.ended_at is None or now - attempt.ended_at < RECENT


def _seconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds()
