"""Request bodies, decompressed within their limit."""

import asyncio
import gzip
import random

import pytest
from starlette.requests import Request
from starlette.types import Message

from pipeline.errors import InputError, TooLarge
from pipeline.ingest.bodies import Bodies

NOISE = random.Random(1).randbytes(100_000)  # does not shrink: it spans many of the pieces that are decompressed at once


def test_the_members_of_a_gzip_body_are_one_body_wherever_they_are_cut() -> None:
    parts = [NOISE, b"", b"x" * 300_000, b"", NOISE[:1]]
    body = b"".join(map(gzip.compress, parts))
    assert Bodies(sum(map(len, parts))).unpack(body, "gzip") == b"".join(parts)


def test_a_body_of_very_many_empty_members_is_empty() -> None:
    assert Bodies(1).unpack(gzip.compress(b"") * 100_000, "gzip") == b""


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (gzip.compress(NOISE) + gzip.compress(b"x" * 900_001), TooLarge),
        (gzip.compress(NOISE)[:-1], InputError),
        (gzip.compress(NOISE) + gzip.compress(NOISE)[:5], InputError),
        (gzip.compress(NOISE) + b"junk", InputError),
        (b"", InputError),
    ],
)
def test_a_body_that_is_too_large_cut_short_or_damaged_is_refused(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        Bodies(1_000_000).unpack(body, "gzip")


async def received(limit: int, *messages: Message) -> bytes:
    """What is read of a request that arrives in these messages; after the last one nothing more comes."""
    left = list(messages)

    async def receive() -> Message:
        return left.pop(0) if left else await asyncio.Event().wait()  # type: ignore[return-value]

    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    async with Bodies(limit).read(request) as body:
        return body


def piece(size: int, more: bool) -> Message:
    return {"type": "http.request", "body": b"x" * size, "more_body": more}


def test_a_body_up_to_the_limit_is_whole_however_it_arrives() -> None:
    for sizes in ([10], [4, 6], [0, 10, 0]):
        messages = [piece(size, more=n + 1 < len(sizes)) for n, size in enumerate(sizes)]
        assert asyncio.run(received(10, *messages)) == b"x" * 10


@pytest.mark.parametrize(
    "messages",
    [
        [piece(11, more=False)],
        [piece(6, more=True), piece(5, more=False)],
        [piece(6, more=True), piece(5, more=True), piece(3, more=False)],
        [piece(11, more=True), {"type": "http.disconnect"}],
        [piece(11, more=True), piece(99, more=True), piece(1, more=False)],
    ],
)
def test_a_body_over_the_limit_is_too_large_wherever_it_crosses_it_and_however_its_sender_goes_on(messages: list[Message]) -> None:
    with pytest.raises(TooLarge):
        asyncio.run(received(10, *messages))
