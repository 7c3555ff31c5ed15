"""PagerDuty's V3 webhook: who acknowledged or resolved an alert there becomes a request to acknowledge the incident here.

https://developer.pagerduty.com/docs/webhooks-overview. A delivery is signed (X-PagerDuty-Signature: `v1=` HMAC-SHA256 of the
raw body, one for each secret while secrets are changed), repeated until it is answered with 2xx, and may come twice.
Only what a person did counts: what Surefoot's own events did there comes back under the name of an integration.
"""

import hashlib
import hmac
import json
from datetime import datetime
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response

from pipeline.clock import Clock
from pipeline.errors import InputError, SurefootError, TooLarge
from pipeline.ingest.arrivals import of_request
from pipeline.ingest.bodies import Bodies
from pipeline.ingest.health import Health
from pipeline.ingest.intake import Intake
from pipeline.records import Request

PATH: Final = "/v1/pagerduty"
HEADER: Final = "x-pagerduty-signature"
MAX_BODY: Final = 1 << 20
SIGNATURES: Final = 16  # of one delivery that are looked at
DONE: Final = {"incident.acknowledged": "acknowledged in PagerDuty", "incident.resolved": "resolved in PagerDuty"}
PERSON: Final = "user_reference"
_TEXT: Final = 256


def signed(body: bytes, header: str, secret: str) -> bool:
    """Whether one of the header's signatures is that of `body` by `secret`; without a secret nothing is."""
    if not secret:
        return False
    right = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest().encode()
    given = [part.strip().removeprefix("v1=") for part in header.split(",")[:SIGNATURES] if part.strip().startswith("v1=")]
    matching = [hmac.compare_digest(one.encode(), right) for one in given]  # each is compared, whichever is right
    return any(matching)


def asked(body: bytes, now: datetime) -> Request | None:
    """What a signed delivery asks for; None where it asks for nothing. Raises InputError where it cannot be read."""
    try:
        event = json.loads(body)["event"]
        kind, ident = _text(event["event_type"]), _text(event["id"])
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise InputError("the body is no PagerDuty V3 webhook: it must be JSON with event.id and event.event_type") from e
    agent, data = (event.get(name) if isinstance(event.get(name), dict) else {} for name in ("agent", "data"))
    incident = str(data.get("incident_key") or "").partition(":")[0]  # the dedup key; an incident may have two alerts
    if kind not in DONE or agent.get("type") != PERSON or not incident:
        return None
    who = " ".join(str(agent.get("summary") or agent.get("id") or "somebody").split())
    intent = hashlib.sha256(f"pagerduty:{ident}".encode()).hexdigest()[:32]
    return Request(
        intent=intent, at=now, kind="acknowledge", target=incident[:_TEXT], actor=f"{who} (PagerDuty)"[:_TEXT], reason=DONE[kind]
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("not a text")
    return value


class Hook:
    """The endpoint. It answers 200 once what is asked for is on disk, 401 for a wrong signature, 503 where it should be sent again."""

    def __init__(self, intake: Intake, health: Health, secret: str, clock: Clock) -> None:
        self._intake, self._health, self._secret, self._clock = intake, health, secret, clock
        self._bodies = Bodies(MAX_BODY)

    async def answer(self, request: HttpRequest) -> Response:
        """Take one delivery."""
        try:
            status, said = await self._take(request)
        except ClientDisconnect:
            return Response(status_code=499)  # nobody reads it
        except SurefootError as e:
            status = 413 if isinstance(e, TooLarge) else 400 if isinstance(e, InputError) else 503
            said = str(e)
        self._health.answered("pagerduty", status)
        return JSONResponse({"status": said}, status)

    async def _take(self, request: HttpRequest) -> tuple[int, str]:
        async with self._bodies.read(request) as body:
            if not signed(body, request.headers.get(HEADER, ""), self._secret):
                return 401, "the signature is missing or wrong: set ingest.pagerduty_secret to the secret that PagerDuty showed"
            now = self._clock()
            wanted = asked(body, now)
            if wanted is None:
                return 200, "nothing to do"
            await run_in_threadpool(self._intake.take, of_request(wanted, now))
            return 200, "asked for"
