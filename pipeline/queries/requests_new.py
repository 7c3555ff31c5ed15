"""The requests that nobody has carried out yet."""

from datetime import datetime

from pipeline.queries import sql
from pipeline.records import Request
from pipeline.store import Store

JOB = "requests"  # the watermark under which each carried-out intent is kept


def requests_new(store: Store, since: datetime) -> list[Request]:
    """The requests after `since` whose intent has no watermark, oldest first; each intent once."""
    return store.read(Request, sql("requests_new"), {"since": since, "job": JOB})
