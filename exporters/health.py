"""Surefoot's own health, by OpenTelemetry instruments that observe when asked: nothing vanished keeps its last value."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import Resource

from exporters.collector import Reading
from exporters.sending.sender import SenderStats
from pipeline.catalog.metrics import SENDER

_Observed = Callable[[CallbackOptions], Iterable[Observation]]


class Health:
    """Instruments over a sender's `stats`."""

    def __init__(self, stats: Callable[[], SenderStats]) -> None:
        self._stats = stats
        self._reader = InMemoryMetricReader()
        self._provider = MeterProvider(metric_readers=[self._reader], resource=Resource.get_empty(), shutdown_on_exit=False)
        meter = self._provider.get_meter("surefoot.agent")
        counter, gauge = meter.create_observable_counter, meter.create_observable_gauge
        counter("surefoot.sender.batches", [_one(lambda: stats().sent_batches)], "1", "Requests that ingest took")
        counter("surefoot.sender.sent", [_by_kind(lambda: stats().sent)], "1", "Records, lines and metric messages that ingest took")
        counter("surefoot.sender.dropped", [_by_kind(lambda: stats().dropped)], "1", "Given up: no room, or too old")
        counter("surefoot.sender.refused", [_one(lambda: stats().refused)], "1", "Requests that ingest refused for good")
        counter("surefoot.sender.rejected", [_one(lambda: stats().rejected)], "1", "Records and points that ingest did not keep")
        counter("surefoot.sender.invalid", [_one(lambda: stats().invalid)], "1", "Records that could not be encoded")
        counter("surefoot.sender.retries", [_one(lambda: stats().retries)], "1", "Requests sent again")
        gauge("surefoot.sender.queue", [_one(lambda: stats().queue_bytes)], "By", "Waiting to be sent")
        counter("surefoot.agent.cpu", [_one(time.process_time)], "s", "CPU time of the agent")
        gauge("surefoot.agent.threads", [_one(threading.active_count)], "1", "Threads of the agent")

    def reading(self, node: str) -> Reading:
        """What waits on `node`, for its page and the store."""
        stats = self._stats()
        return Reading(
            SENDER,
            {"node": node},
            {
                "sender.reachable": int(stats.reachable),
                "sender.queue": stats.queue_bytes,
                "sender.buffer": stats.buffer_bytes,
                "sender.buffer.age": stats.buffer_age,
                "sender.dropped": sum(stats.dropped.values()),
            },
        )

    def scopes(self) -> list[bytes]:
        """Serialised ScopeMetrics of the values now."""
        data = self._reader.get_metrics_data()
        if data is None:
            return []
        return [scope.SerializeToString() for resource in encode_metrics(data).resource_metrics for scope in resource.scope_metrics]


def _one(value: Callable[[], float]) -> _Observed:
    return lambda _: [Observation(value())]


def _by_kind(values: Callable[[], Mapping[str, int]]) -> _Observed:
    return lambda _: [Observation(count, {"kind": kind}) for kind, count in values().items()]
