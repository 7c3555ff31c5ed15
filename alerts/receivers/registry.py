"""Every kind of receiver, once."""

from collections.abc import Callable, Sequence
from typing import Protocol

from alerts.receivers.log import Log
from alerts.receivers.page import Page
from alerts.receivers.pagerduty import PagerDuty
from alerts.receivers.webhook import Webhook
from pipeline.catalog.layers import Severity, gravity
from pipeline.errors import SettingsError
from pipeline.settings import ReceiverSettings


class Receiver(Protocol):
    """Somebody to tell. `bucket` names what its rate limit is counted on."""

    name: str
    min_severity: Severity
    bucket: str

    def send(self, notification: str, page: Page) -> str:
        """Send `page`; gives the answer. Raises DeliveryError."""


KINDS: dict[str, Callable[[ReceiverSettings, str], Receiver]] = {
    "log": Log,
    "webhook": Webhook,
    "pagerduty": PagerDuty,
}


def receivers(settings: Sequence[ReceiverSettings]) -> dict[str, Receiver]:
    """The receivers that `settings` ask for, by name; one without a name is called by its kind (webhook, webhook-2, …).

    Raises SettingsError where a name is used twice or a receiver lacks what it needs.
    """
    made: dict[str, Receiver] = {}
    for one in settings:
        name = one.name or _free(one.kind, made)
        if name in made:
            raise SettingsError(f"receivers: two are named {name}; names must differ, since deliveries are kept by them")
        made[name] = KINDS[one.kind](one, name)
    return made


def wants(receiver: Receiver, severity: str) -> bool:
    """True where `severity` is as bad as the receiver's `min_severity`, or worse."""
    return gravity(Severity(severity)) <= gravity(receiver.min_severity)


def _free(kind: str, made: dict[str, Receiver]) -> str:
    n = sum(name == kind or name.startswith(f"{kind}-") for name in made)
    return kind if n == 0 else f"{kind}-{n + 1}"
