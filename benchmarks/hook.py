"""Goal 6: what the training-step hook costs, in CPU time of the training's own thread.

hook.record  two clock reads and one record of 16 fields in the ring, against two clock reads and deque.append of a
             tuple of the same fields.
hook.phase   one mark (a phase's beginning or its end, the live state included), against the same peer.
hook.otel    a whole step through StepMonitor with five figures, live state included, against three OpenTelemetry
             instruments (histogram, gauge, counter; four attributes).
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns
from unittest.mock import patch

from benchmarks.harness import Goal, Result, compare
from surefoot import StepMonitor
from surefoot.hook import layout
from surefoot.hook.ring import Identity, RingWriter

STEPS = 20_000
WHO = Identity("run", "bench-1", "node", 0, 0, 1, time.time_ns())


def run() -> Iterator[Result]:
    """The three lines; hook.otel is skipped without opentelemetry-sdk."""
    where = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with TemporaryDirectory(dir=where) as folder, patch.dict(os.environ, {layout.ENV_ATTEMPT: "bench-2", layout.ENV_RING_DIR: folder}):
        monitor = StepMonitor()
        if not monitor.active:
            yield Result.skip("hook", monitor.reason)
            return
        record = _record(RingWriter.create(Path(folder), WHO))
        peer = _peer()
        yield compare("hook.record", "16 fields into the ring : clocks + deque.append", record, peer, Goal(4.0, "<="), _ns)
        yield compare("hook.phase", "a phase mark : clocks + deque.append", _phase_mark(monitor), peer, Goal(1.0, "<="), _ns)
        try:
            instruments = _instruments()
        except ImportError as e:
            yield Result.skip("hook.otel", str(e))
            return
        yield compare("hook.otel", "a step with five figures : three OTel instruments", _step(monitor), instruments, Goal(0.04, "<="), _ns)


def _ns(figure: float) -> str:
    return f"{figure:.0f}ns"


def _per_step(loop: Callable[[int], None], steps: int = STEPS) -> float:
    began = time.thread_time_ns()
    loop(steps)
    return (time.thread_time_ns() - began) / steps


def _peer() -> Callable[[], float]:
    append = deque[tuple[float, ...]](maxlen=layout.CAPACITY).append

    def loop(steps: int) -> None:
        for n in range(steps):
            began = perf_counter_ns()
            append((n, 1, 31, n, began, perf_counter_ns(), 2.5, 0.25, 1e12, 4096, 32, 0, 0, 0, 0, 0))

    return lambda: _per_step(loop)


def _record(writer: RingWriter) -> Callable[[], float]:
    record = writer.step

    def loop(steps: int) -> None:
        for n in range(steps):
            began = perf_counter_ns()
            record(n, began, perf_counter_ns(), None, 31, 2.5, 0.25, 1e12, 4096, 32)

    return lambda: _per_step(loop)


def _step(monitor: StepMonitor) -> Callable[[], float]:
    def loop(steps: int) -> None:
        for n in range(steps):
            with monitor.step(n) as step:
                step.loss, step.grad_norm, step.flops = 2.5, 0.25, 1e12
                step.tokens, step.samples = 4096, 32

    return lambda: _per_step(loop)


def _phase_mark(monitor: StepMonitor) -> Callable[[], float]:
    """Half of what a phase costs: it has a beginning and an end."""

    def loop(phases: int) -> None:
        with monitor.step(1):
            for _ in range(phases):
                with monitor.phase("forward"):
                    pass

    return lambda: _per_step(loop) / 2


def _instruments() -> Callable[[], float]:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    meter = MeterProvider(metric_readers=[InMemoryMetricReader()]).get_meter("bench")
    record = meter.create_histogram("step.seconds").record
    put = meter.create_gauge("loss").set
    add = meter.create_counter("tokens").add
    attributes: dict[str, str | int] = {"run": "run", "attempt": "bench-1", "node": "node", "rank": 0}

    def loop(steps: int) -> None:
        for _ in range(steps):
            record(0.2, attributes)
            put(2.5, attributes)
            add(4096, attributes)

    return lambda: _per_step(loop, STEPS // 10)
