"""PagerDuty, Events API v2: https://developer.pagerduty.com/docs/events-api-v2/overview/

trigger opens an alert or adds to the open one of the same dedup key; acknowledge and resolve of a key
without an open alert are dropped by PagerDuty in silence. They need no payload, and have one here as Alertmanager's
have: who did what, how long it took and what it cost stand in the alert's log. 202 is taken, 400 never retried, 429, 5xx and
network errors are. The official client is not used: it sleeps on 429 without limit in the calling thread
and stamps times that are not valid ISO 8601.
"""

import hashlib
from typing import Any

from alerts.receivers.fit import cut, details_that_fit, encode, short_key
from alerts.receivers.http import post
from alerts.receivers.page import Page
from pipeline.catalog.layers import Severity
from pipeline.clock import utcnow
from pipeline.settings import ReceiverSettings

URL = "https://events.pagerduty.com/v2/enqueue"
SUMMARY_CHARACTERS = 1024
KEY_BYTES = 255
BODY_BYTES = 512_000
TEXT_CHARACTERS = 255  # source, component, group, class: no limit is documented
LINKS = 20


def render(page: Page, routing_key: str) -> bytes:
    """The request body for `page`, within PagerDuty's limits."""
    body: dict[str, Any] = {"routing_key": routing_key, "event_action": page.event, "dedup_key": short_key(page.dedup_key, KEY_BYTES)}
    links = [{"href": href, "text": cut(text, TEXT_CHARACTERS)} for text, href in page.links[:LINKS] if len(href) <= 2048]
    if links:
        body |= {"client": "Surefoot", "client_url": links[0]["href"], "links": links}
    payload = {
        "summary": cut(page.summary, SUMMARY_CHARACTERS) or f"{page.cls or 'incident'} on {page.source or 'unknown'}",
        "source": cut(page.source, TEXT_CHARACTERS) or "unknown",
        "severity": page.severity if page.severity in list(Severity) else Severity.ERROR,
        "timestamp": page.at.isoformat(timespec="milliseconds"),
        "component": cut(page.component, TEXT_CHARACTERS),
        "group": cut(page.group, TEXT_CHARACTERS),
        "class": cut(page.cls, TEXT_CHARACTERS),
    }
    body["payload"] = {k: v for k, v in payload.items() if v}
    room = BODY_BYTES - len(encode(body)) - len(',"custom_details":')
    body["payload"]["custom_details"] = details_that_fit(page.details, room)
    return encode(body)


class PagerDuty:
    """One PagerDuty service. `key` of the settings is its routing key; `url` another endpoint (EU, a stub)."""

    def __init__(self, settings: ReceiverSettings, name: str) -> None:
        self.name = name
        self.min_severity = Severity(settings.min_severity)
        self.bucket = hashlib.sha256(settings.key.encode()).hexdigest()[:16]  # the limit is the key's; the key stays out of files
        self._key, self._url = settings.key, settings.url or URL

    def send(self, notification: str, page: Page) -> str:
        """Send `page`; gives PagerDuty's answer. Raises DeliveryError."""
        return post(self._url, render(page, self._key), {"Content-Type": "application/json"}, utcnow())
