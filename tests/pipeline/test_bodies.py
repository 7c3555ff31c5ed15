"""Request bodies, decompressed within their limit."""

import gzip
import random

import pytest

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
