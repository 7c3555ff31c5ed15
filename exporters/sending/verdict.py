"""What an answer of an OTLP receiver means: retry or not, and when. Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from exporters.sending.outgoing import Signal
from pipeline.clock import utcnow
from pipeline.errors import DeliveryError

RETRYABLE: Final = frozenset({429, 502, 503, 504})  # the OTLP specification's list; everything else is permanent
MAX_WAIT: Final = 30.0  # seconds; a receiver cannot put us to sleep for longer


def explain(url: str, status: int, answer: bytes, wait: float | None) -> DeliveryError:
    """The error that an answer with `status` other than 200 stands for; its text names the receiver's reason."""
    reason = _reason(answer)
    return DeliveryError(f"{url} answered {status}{': ' + reason if reason else ''}", permanent=status not in RETRYABLE, retry_after=wait)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds to wait that a Retry-After header (seconds or HTTP-date) asks for, 0 to MAX_WAIT; None without a usable one."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            at = parsedate_to_datetime(value)
        except ValueError:
            return None
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        seconds = (at - (now or utcnow())).total_seconds()
    return min(max(seconds, 0.0), MAX_WAIT) if seconds == seconds else None


def partial(signal: Signal, answer: bytes) -> tuple[int, str]:
    """How many ingest rejected, and why; an answer that cannot be read counts as all kept (it said 200)."""
    try:
        if signal is Signal.LOGS:
            logs = ExportLogsServiceResponse.FromString(answer).partial_success
            return logs.rejected_log_records, logs.error_message
        metrics = ExportMetricsServiceResponse.FromString(answer).partial_success
        return metrics.rejected_data_points, metrics.error_message
    except DecodeError:
        return 0, ""


def _reason(answer: bytes) -> str:
    try:
        return str(Status.FromString(answer).message)[:200]
    except DecodeError:
        return ""
