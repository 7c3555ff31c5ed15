"""Any HTTP endpoint: CloudEvents 1.0, structured JSON (https://cloudevents.io)."""

import hashlib
from typing import Any

from alerts.receivers.fit import details_that_fit, encode
from alerts.receivers.http import post
from alerts.receivers.page import Page
from pipeline.catalog.layers import Severity
from pipeline.clock import utcnow
from pipeline.settings import ReceiverSettings

BODY_BYTES = 512_000
SOURCE = "/surefoot/alerts"
CONTENT_TYPE = "application/cloudevents+json; charset=UTF-8"


def render(page: Page, notification: str) -> bytes:
    """The event for `page`. Its id is the notification's: a receiver can tell a second delivery by (source, id)."""
    data: dict[str, Any] = {
        "dedup_key": page.dedup_key,
        "event": page.event,
        "severity": page.severity,
        "summary": page.summary,
        "source": page.source,
        "component": page.component,
        "group": page.group,
        "class": page.cls,
        "links": [{"href": href, "text": text} for text, href in page.links],
    }
    event: dict[str, Any] = {
        "specversion": "1.0",
        "id": notification,
        "source": SOURCE,
        "type": f"surefoot.incident.{page.event}",
        "subject": page.dedup_key,
        "time": page.at.isoformat(timespec="microseconds"),
        "datacontenttype": "application/json",
        "data": data,
    }
    data["details"] = details_that_fit(page.details, BODY_BYTES - len(encode(event)) - len(',"details":'))
    return encode(event)


class Webhook:
    """One endpoint. `url` of the settings is its address; `key`, where set, is sent as a bearer token."""

    def __init__(self, settings: ReceiverSettings, name: str) -> None:
        self.name = name
        self.min_severity = Severity(settings.min_severity)
        self.bucket = hashlib.sha256(settings.url.encode()).hexdigest()[:16]
        self._url = settings.url
        self._headers = {"Content-Type": CONTENT_TYPE} | ({"Authorization": f"Bearer {settings.key}"} if settings.key else {})

    def send(self, notification: str, page: Page) -> str:
        """Send `page`; gives the endpoint's answer. Raises DeliveryError."""
        return post(self._url, render(page, notification), self._headers, utcnow())
