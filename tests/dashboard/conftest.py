"""Rows as the other parts write them, for the console to show: a run with a restart, incidents in each state, signs of life."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from pipeline.catalog.devices import device_id
from pipeline.catalog.metrics import HOST
from pipeline.clock import utcnow
from pipeline.records import (
    ActionTransition,
    AttemptTransition,
    Beat,
    Event,
    FindingTransition,
    IncidentTransition,
    LedgerEntry,
    Live,
    NotificationTransition,
    Record,
    RunTransition,
    Step,
)
from pipeline.store import Store

COMMAND = "torchrun --nproc-per-node=4 --nnodes=2 train.py --config llama-8b.yaml"


@dataclass
class Seed:
    """Writes rows as of `now`. Every call has its own tokens."""

    store: Store
    now: datetime
    calls: int = 0

    def write(self, *records: Record) -> None:
        """Insert records, by table."""
        for table in {r.table for r in records}:
            self.calls += 1
            self.store.insert([r for r in records if r.table == table], token=f"seed-{self.calls}")

    def back(self, seconds: float) -> datetime:
        """`seconds` before now."""
        return self.now - timedelta(seconds=seconds)

    def signs(self, nodes: Sequence[str] = ("gpu-07", "gpu-08"), *, silent: Sequence[str] = ()) -> None:
        """Agents of `nodes` (those in `silent` 95 s ago), jobs and ingest, just heard."""
        self.write(Beat(component="jobs", at=self.back(0.4)), Beat(component="ingest", at=self.back(0.6)))
        rows = [
            {"device_id": device_id(HOST, {"node": n}), "ts": self.back(95 if n in silent else 3), "node": n, "load1": 3.5}
            for n in (*nodes, *silent)
        ]
        self.calls += 1
        self.store.insert_rows("host_raw", rows, token=f"seed-{self.calls}")

    def run(
        self, run: str, *, nodes: Sequence[str], ranks: int, seconds: float, step_seconds: float, crash_at: float | None = None
    ) -> None:
        """A run that began `seconds` ago and goes on; with `crash_at` a second attempt began so many seconds ago."""
        start = self.back(seconds)
        self.write(
            RunTransition(
                old_state="", new_state="started", reason="launched", actor=f"launcher:{nodes[0]}", at=start, run=run, node=nodes[0],
                command=COMMAND,
            )
        )  # fmt: skip
        cuts = [(1, seconds, crash_at or 0.0)] + ([(2, crash_at - 9.0, 0.0)] if crash_at else [])
        step, spread = 0, {}
        for launch, begin, end in cuts:
            attempt = f"{run}-{launch}"
            self._attempt(run, attempt, launch, nodes[0], ranks, begin, ended=end if end else None)
            step = (step // 100) * 100
            step = self._steps(run, attempt, nodes, ranks, begin - 14, end, step, step_seconds)
            spread[attempt] = (begin, end)
        self._live(run, f"{run}-{cuts[-1][0]}", nodes, ranks, step)
        self._ledger(run, ranks, spread)
        self._logs(run, f"{run}-{cuts[-1][0]}", nodes[0], step, step_seconds)
        last = cuts[-1][0]
        self.write(
            Event(
                id=f"{run}-ckpt", at=self.back(min(150, seconds / 2)), kind="checkpoint_completed", layer="storage", severity="info",
                run=run, code=str(step // 100 * 100),
            ),
            *(
                Beat(component="launcher", at=self.back(0.5), node=n, run=run, attempt=f"{run}-{last}", state="running", launch=last)
                for n in nodes
            ),
        )  # fmt: skip

    def over(self, run: str, state: str, reason: str, *, ago: float, code: int | None = None, attempt: str = "", told: bool = True) -> None:
        """The end of `run` `ago` seconds ago; its launcher told (or not) how `attempt` and its first two ranks ended."""
        end = RunTransition(
            old_state="started", new_state=state, reason=reason, actor="x", at=self.back(ago), run=run, node="gpu-07", exit_code=code
        )
        self.write(end)
        if attempt and told:
            launch = int(attempt.rpartition("-")[2])
            self.write(
                AttemptTransition(
                    old_state="running", new_state="ended", reason=reason, actor="x", at=end.at, run=run, attempt=attempt, launch=launch,
                    exit_code=code,
                ),
                self.exit(run, attempt, 0, end.at, "-15", {"signal": "SIGTERM", "stopped_by": "launcher"}),
                self.exit(run, attempt, 1, end.at, "1", {}),
            )  # fmt: skip

    def exit(self, run: str, attempt: str, rank: int, at: datetime, code: str, attrs: dict[str, str]) -> Event:
        """A rank's end, as its launcher tells it."""
        return Event(
            id=f"{attempt}-{rank}-exit", at=at, kind="rank_exited", layer="framework", severity="info", run=run, attempt=attempt, rank=rank,
            code=code, attrs=attrs,
        )  # fmt: skip

    def _attempt(self, run: str, attempt: str, launch: int, node: str, ranks: int, begin: float, ended: float | None) -> None:
        resumed = f"/checkpoints/{run}/step_00002100" if launch > 1 else ""
        base = AttemptTransition(
            old_state="", new_state="issued", reason="the launcher asked for it", actor="leader", at=self.back(begin), run=run,
            attempt=attempt, launch=launch,
        )  # fmt: skip
        starting = replace(
            base, old_state="issued", new_state="starting", at=self.back(begin - 0.4), node=node, ranks=ranks, resume_from=resumed
        )
        rows = [
            base,
            starting,
            replace(starting, old_state="starting", new_state="running", reason="first rank seen", at=self.back(begin - 2)),
        ]
        if ended is not None:
            why = f"rank 3 on {node} was killed by SIGKILL; the others were stopped"
            rows.append(replace(starting, old_state="running", new_state="ended", reason=why, at=self.back(ended), exit_code=-9))
        self.write(*rows)

    def _steps(self, run: str, attempt: str, nodes: Sequence[str], ranks: int, begin: float, end: float, step: int, length: float) -> int:
        rows, at = [], self.back(begin)
        while at < self.back(end):
            saving = 4 * length if step % 100 == 99 else None
            for rank in range(ranks):
                own = length * (1 + 0.03 * math.sin(step / 9 + rank) + 0.012 * rank + 0.04 * ((step * 7 + rank * 3) % 11 == 0))
                wait = length * 1.16 - own
                whole = length * 1.16 + (saving or 0)
                rows.append(
                    Step(
                        run=run, attempt=attempt, node=nodes[rank * len(nodes) // ranks], rank=rank, step=step, started_at=at,
                        ended_at=at + timedelta(seconds=whole + 0.01 * rank * length), data=0.05 * own, forward=0.28 * own,
                        backward=0.55 * own, optimizer=0.1 * own,
                        comm_wait=max(wait, 0.0), checkpoint=saving, loss=2.1 + 8 * math.exp(-step / 600), grad_norm=1.1, tokens=65536,
                    )
                )  # fmt: skip
            at += timedelta(seconds=length * 1.16 + (saving or 0) + 0.001)
            step += 1
        self.write(*rows)
        return step

    def _live(self, run: str, attempt: str, nodes: Sequence[str], ranks: int, step: int) -> None:
        self.write(
            *(
                Live(
                    run=run, attempt=attempt, node=nodes[r * len(nodes) // ranks], rank=r, at=self.back(0.3), pid=4711 + r, step=step,
                    completed=step - 1,
                    phase="backward" if r else "comm_wait", since=self.back(0.5), collective="" if r else "all_reduce", process_state="R",
                    cpu_seconds=812.0,
                )
                for r in range(ranks)
            )
        )  # fmt: skip

    def _ledger(self, run: str, ranks: int, spread: dict[str, tuple[float, float]]) -> None:
        """Segments from start to now minus 20 s, split by hand."""
        rows = []
        for attempt, (begin, end) in spread.items():
            end = max(end - 9 if end else 20.0, 20.0)
            pieces = self._pieces(begin, end, crashed=len(spread) > 1 and attempt.endswith("-1"))
            for rank in range(ranks):
                rows += [
                    LedgerEntry(
                        run=run, attempt=attempt, generation=g, rank=rank, started_at=self.back(a), ended_at=self.back(b), category=c,
                        incident=i,
                    )
                    for g in (1, 2)  # the older generation must not count
                    for a, b, c, i in pieces
                ]  # fmt: skip
        self.write(*rows)

    def _pieces(self, begin: float, end: float, *, crashed: bool) -> list[tuple[float, float, str, str]]:
        lost = end + 10.4 + 29 if crashed else end
        pieces, at = [(begin, begin - 8, "init", ""), (begin - 8, begin - 14, "load_checkpoint", "")], begin - 14
        while at > lost:
            for length, category in ((105.0, "productive"), (4.5, "checkpoint"), (2.5, "data_wait")):
                stop = max(at - length, lost)
                if at > stop:
                    pieces.append((at, stop, category, ""))
                at = stop
        if crashed:
            pieces += [(lost, end + 10.4, "lost_progress", "inc-resolved"), (end + 10.4, end + 9, "detect", "inc-resolved")]
            pieces += [(end + 9, end + 8.6, "act", "inc-resolved"), (end + 8.6, end, "restart", "inc-resolved")]
        return pieces

    def _logs(self, run: str, attempt: str, node: str, step: int, length: float) -> None:
        lines = [(60 - i, f"step {step - 60 + i}  loss {2.1 + 0.01 * (i % 7):.4f}  {length:.2f} s/step  54.6k tok/s") for i in range(60)]
        rows = [
            {
                "Timestamp": self.back(age), "Body": text, "ServiceName": "surefoot.run", "ResourceAttributes": {"host.name": node},
                "LogAttributes": {"run": run, "attempt": attempt, "rank": "0", "stream": "stdout"},
            }
            for age, text in lines
        ]  # fmt: skip
        self.calls += 1
        self.store.insert_rows("logs", rows, token=f"seed-{self.calls}")

    def crash(self, run: str, incident: str = "inc-resolved", *, ago: float, rank: int = 3, node: str = "gpu-07") -> None:
        """A rank crash `ago` seconds ago, restarted by itself and resolved."""
        onset = self.back(ago)

        def at(s: float) -> datetime:
            return onset + timedelta(seconds=s)

        opened = IncidentTransition(
            old_state="", new_state="open", reason="first finding", actor="leader", at=at(0.9), incident=incident,
            key=f"rank_crash:{run}", fault="rank_crash",
            layer="framework", severity="critical", title=f"Rank {rank} of {run} was killed by SIGKILL", run=run, attempt=f"{run}-1",
            node=node, rank=rank, onset=onset,
            detected_at=at(0.9), located_at=at(0.9),
        )  # fmt: skip
        acting = replace(
            opened, old_state="open", new_state="mitigating", reason="restart_run was sent", at=at(1.3), acted_at=at(1.3),
            next_attempt=f"{run}-2",
        )  # fmt: skip
        waiting = replace(acting, old_state="mitigating", new_state="recovering", reason="the new attempt is up", at=at(3.1))
        over = replace(
            waiting, old_state="recovering", new_state="resolved", reason="caught up with the step before the failure", at=at(39.4),
            recovered_at=at(10.4),
            caught_up_at=at(39.2), resolved_at=at(39.4),
        )  # fmt: skip
        self.write(opened, acting, waiting, over)
        self._crash_rest(run, incident, onset, rank, node, mode="auto")
        self._pages(incident, onset, resolved=at(39.6))

    def _crash_rest(self, run: str, incident: str, onset: datetime, rank: int, node: str, *, mode: str) -> None:
        def at(s: float) -> datetime:
            return onset + timedelta(seconds=s)

        hang = mode != "auto"
        facts: dict[str, object] = {"exit_code": -9, "signal": "SIGKILL", "pid": 4714, "first_of_ranks": True, "last_step_completed": 2178}
        reason, detector = f"rank {rank} ended with signal 9 before any other rank", "rank_exit"
        if hang:
            reason, detector = (
                f"3 of 4 ranks have waited in all_reduce of step 2431 for 5.9 s; rank {rank} is still in backward, its process is stopped",
                "step_stall",
            )
            facts = {
                "limit": "5.7 s = 8 x the median step of 0.71 s",
                "waiting_ranks": [0, 1, 3],
                "phase_of_rank": "backward",
                "process_state": "T",
            }
        found = FindingTransition(
            old_state="", new_state="open", reason=reason, actor="leader", at=at(4.2 if hang else 0.9), finding=f"f-{incident}", key="k",
            detector=detector, fault="collective_hang" if hang else "rank_crash", layer="communication" if hang else "framework",
            severity="critical", run=run, attempt=f"{run}-1", node=node, rank=rank, onset=onset,
            evidence=json.dumps(facts), confidence=0.98, incident=incident,
        )  # fmt: skip
        state = "issued" if mode == "auto" else "waiting"
        action = ActionTransition(
            old_state="", new_state=state, reason="it is answered by a restart from the last complete checkpoint, step 2100",
            actor="leader", at=at(4.8 if hang else 1.3),
            action=f"act-{incident}", key="k", kind="restart_run", mode=mode, term=7, incident=incident, run=run, attempt=f"{run}-1",
            new_attempt=f"{run}-2", launch=2,
            deadline=at(121 if mode == "auto" else 1800),
        )  # fmt: skip
        rows: list[Record] = [found, action]
        if mode == "auto":
            done = replace(action, old_state="issued", new_state="succeeded", reason="the new attempt was spawned", at=at(3.0))
            rows.append(replace(done, actor=f"launcher:{node}"))
            rows.append(replace(found, old_state="open", new_state="cleared", reason=f"attempt {run}-2 completed a step", at=at(10.5)))
        stack = 'Thread 4711 (active): "MainThread"\n    all_reduce (torch/distributed/distributed_c10d.py:2806)\n    main (train.py:208)'
        rows += [self._capture(incident, run, node, r, stack, at(5.4 if hang else 1.6)) for r in (0, 1)]
        self.write(*rows)

    def _capture(self, incident: str, run: str, node: str, rank: int, stack: str, at: datetime) -> Event:
        attrs = {"text": stack, "pid": str(4711 + rank)}
        return Event(
            id=f"cap-{incident}-{rank}", at=at, kind="capture", layer="framework", severity="info", node=node, run=run,
            attempt=f"{run}-1", rank=rank, code="stacks", attrs=attrs,
        )  # fmt: skip

    def _pages(self, incident: str, onset: datetime, resolved: datetime | None) -> None:
        sent = NotificationTransition(
            old_state="queued", new_state="sent", reason="202 accepted", actor="leader", at=onset + timedelta(seconds=5.2),
            notification=f"n-{incident}", incident=incident,
            receiver="pagerduty", event="trigger", dedup_key=incident, tries=1,
        )  # fmt: skip
        self.write(replace(sent, old_state="", new_state="queued", at=onset + timedelta(seconds=4.9)), sent)
        if resolved:
            self.write(replace(sent, at=resolved, notification=f"n-{incident}-r", event="resolve"))

    def waiting(self, run: str, incident: str = "inc-open", *, ago: float, rank: int = 5, node: str = "gpu-08") -> None:
        """An incident that is open, and its restart waits for approval."""
        onset = self.back(ago)
        self.write(
            IncidentTransition(
                old_state="", new_state="open", reason="first finding", actor="leader", at=onset + timedelta(seconds=4.3),
                incident=incident, key=f"hang:{run}",
                fault="collective_hang", layer="communication", severity="critical",
                title=f"{run} hangs: rank {rank} never reached the all_reduce of step 2431", run=run,
                attempt=f"{run}-1", node=node, rank=rank, onset=onset, detected_at=onset + timedelta(seconds=4.2),
                located_at=onset + timedelta(seconds=4.6),
            )
        )  # fmt: skip
        self._crash_rest(run, incident, onset, rank, node, mode="approve")
        self._pages(incident, onset, resolved=None)

    def loop(self, run: str, incident: str = "inc-loop", *, ago: float) -> None:
        """A run that failed twice at its start: opened without a place, which its second finding names; no restart is due."""
        at, later = self.back(ago), self.back(ago - 4)
        opened = IncidentTransition(
            old_state="", new_state="open", reason="first finding", actor="leader", at=at, incident=incident, key="l", fault="restart_loop",
            layer="scheduler", severity="critical", title=f"The run failed the same way too often: vm, run {run}", run=run,
            attempt=f"{run}-1", node="vm", onset=at, detected_at=at,
        )  # fmt: skip
        found = FindingTransition(
            old_state="", new_state="open", reason="the command ended with 1", actor="leader", at=at, finding="f-1", key="k",
            detector="rank_exit", fault="startup_failure", layer="framework", severity="critical", run=run, attempt=f"{run}-1", node="vm",
            confidence=0.5, incident=incident,
        )  # fmt: skip
        named = replace(found, reason="rank 0 exited with 1", at=later, finding="f-2", attempt=f"{run}-2", rank=0, confidence=1.0)
        self.write(opened, replace(opened, at=later, reason=f"attempt {run}-2 failed too", next_attempt=f"{run}-2"), found, named)

    def warning(self, incident: str = "inc-warning", *, ago: float, node: str = "gpu-11") -> None:
        """A node's agent is silent: a warning, nobody's work is hurt."""
        at = self.back(ago)
        self.write(
            IncidentTransition(
                old_state="", new_state="open", reason="the agent is silent, its launcher speaks", actor="leader", at=at,
                incident=incident, key="t", fault="telemetry_lost",
                layer="unknown", severity="warning", title=f"No telemetry from {node}; its run goes on", node=node, onset=at,
                detected_at=at, located_at=at,
            )
        )  # fmt: skip


@pytest.fixture
def seed(store: Store) -> Iterator[Seed]:
    """A Seed for this test's store, as of now."""
    yield Seed(store, utcnow())


@pytest.fixture
def console(store_environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., AppTest]]:
    """Draws a page of the console on this test's store: `console("incident", incident="x")`. A second call is a second session."""
    for name, value in store_environment.items():
        if name.startswith("SUREFOOT_"):
            monkeypatch.setenv(name, value)
    forget()

    def draw(page: str, **query: str) -> AppTest:
        script = f"from dashboard.views import {page}\n{page}.page()\n"
        test = AppTest.from_string(script, default_timeout=60)
        test.query_params.update(query)
        return test.run()

    yield draw
    forget()


@pytest.fixture
def later() -> Callable[[], None]:
    """Lets the time pass for which an answer of the store serves everybody."""
    return st.cache_data.clear


def forget() -> None:
    """Empty the caches that all sessions of a process share."""
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def markup_of() -> Callable[[AppTest], str]:
    """All that a page drew as HTML."""

    def markup(page: AppTest) -> str:
        assert not page.exception, page.exception
        return "\n".join(element.proto.body for element in page.get("html"))

    return markup


@pytest.fixture
def says(markup_of: Callable[[AppTest], str]) -> Callable[[AppTest], str]:
    """What a page says, without its tags, in one line."""
    return lambda page: " ".join(re.sub(r"<[^>]*>", " ", markup_of(page)).split())
