"""The log: a page as one structured line, so that even a machine without receivers says what it found."""

from typing import Any

import structlog

from alerts.receivers.page import Page
from pipeline.catalog.layers import Severity
from pipeline.settings import ReceiverSettings

_log = structlog.get_logger("surefoot.page")
_LEVELS = {Severity.CRITICAL: "critical", Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "info"}


def render(page: Page) -> dict[str, Any]:
    """The fields of the line."""
    words = {"source": page.source, "component": page.component, "group": page.group, "class": page.cls}
    links = {"link": page.links[0][1]} if page.links else {}
    links |= {"runbook": page.details.get("runbook", "")}
    return {
        "page": page.event,
        "dedup_key": page.dedup_key,
        "severity": page.severity,
        "summary": page.summary,
        "at": page.at.isoformat(),
    } | {k: v for k, v in (words | links).items() if v}


class Log:
    """Writes to this process's log; never fails."""

    def __init__(self, settings: ReceiverSettings, name: str) -> None:
        self.name = name
        self.min_severity = Severity(settings.min_severity)
        self.bucket = f"log:{name}"

    def send(self, notification: str, page: Page) -> str:
        """Log `page`: a trigger at its severity's level, the rest as information."""
        level = _LEVELS.get(Severity(page.severity), "error") if page.event == "trigger" and page.severity in list(Severity) else "info"
        getattr(_log, level)("page", notification=notification, **render(page))
        return "logged"
