"""Hands a few records to ingest and says whether they were taken: for a command that a person waits for."""

from collections.abc import Sequence
from typing import Final
from uuid import uuid4

import requests
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter
from urllib3.exceptions import HTTPError

from exporters.sending import wire
from exporters.sending.outgoing import Signal
from exporters.sending.verdict import explain, partial, retry_after
from exporters.sources.web import why
from pipeline.errors import DeliveryError
from pipeline.records import Record

_TRIES: Final = 4
_ANSWER_LIMIT: Final = 64 << 10


def deliver(endpoint: str, token: str, records: Sequence[tuple[str, Record]], *, node: str, timeout: float = 5.0) -> None:
    """Sends (event name, record) pairs and waits until ingest has them on disk; each try has `timeout` seconds.

    Raises DeliveryError, with what to do about it, where nobody takes them or ingest refuses one.
    """
    of = wire.resource({"host.name": node, "service.name": "surefoot.command"})
    body = wire.logs_request(of, [wire.encode_record(name, record) for name, record in records])
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-protobuf", "X-Surefoot-Batch": uuid4().hex}
    retrying = Retrying(
        retry=retry_if_exception(lambda e: isinstance(e, DeliveryError) and not e.permanent),
        wait=wait_exponential_jitter(multiplier=0.2, max=2.0, jitter=0.2),
        stop=stop_after_attempt(_TRIES),
        reraise=True,
    )
    answer = retrying(_post, endpoint.rstrip("/") + Signal.LOGS, body, headers, timeout)
    refused, why = partial(Signal.LOGS, answer)
    if refused:
        raise DeliveryError(f"ingest did not take it: {why}", permanent=True)


def _post(url: str, body: bytes, headers: dict[str, str], timeout: float) -> bytes:
    with requests.Session() as session:
        session.trust_env = False  # no proxy, no .netrc: the token goes to ingest alone
        try:
            with session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False, stream=True) as response:
                answer = bytes(response.raw.read(_ANSWER_LIMIT, decode_content=True))
                if response.status_code == 200:
                    return answer
                error = explain(url, response.status_code, answer, retry_after(response.headers.get("Retry-After")))
                hint = "; set SUREFOOT_INGEST__TOKEN to ingest's token" if response.status_code in (401, 403) else ""
                raise DeliveryError(f"{error}{hint}", permanent=error.permanent)
        except (requests.RequestException, HTTPError, OSError) as e:
            what_to_do = "start it (surefoot up), or name it: SUREFOOT_INGEST__URL"
            raise DeliveryError(f"nothing was recorded: ingest at {url} does not answer ({why(e)}); {what_to_do}", permanent=False) from e
