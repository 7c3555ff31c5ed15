"""Reads request bodies within limits: size before and after decompression, time, and all bodies together."""

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from starlette.requests import ClientDisconnect, Request

from pipeline.errors import InputError, SurefootError, TooLarge
from pipeline.sizes import bound

SECONDS: Final = 30.0  # in which a body must be here
TOGETHER: Final = 4  # bodies of the largest size that may be in memory at once
_GZIP: Final = 31  # zlib's window bits for gzip with its header
_PIECE: Final = 16 << 10  # bytes that are decompressed at once
_DRAIN_SECONDS: Final = 2.0


class Crowded(SurefootError):
    """Too much is being received at once: the sender should come back."""

    permanent = False


class UnknownEncoding(InputError):
    """The body is compressed in a way that is not understood."""


class Bodies:
    """Reads bodies of at most `limit` bytes each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncIterator[bytes]:
        """The body as it was sent, not decompressed yet. It counts as held until the context ends.

        Raises TooLarge, Crowded where too many are held, InputError where it does not come in time.
        """
        chunks: list[bytes] = []
        size = 0
        stream = request.stream()
        try:
            if int(request.headers.get("content-length", "0")) > self._limit:
                raise await self._refuse(stream)
            async with asyncio.timeout(SECONDS):
                async for chunk in stream:
                    size += len(chunk)
                    self._held += len(chunk)
                    if size > self._limit:
                        raise await self._refuse(stream)
                    if self._held > TOGETHER * self._limit:
                        raise Crowded("too much is being received at once")
                    chunks.append(chunk)
            yield b"".join(chunks)
        except TimeoutError:
            raise InputError(f"the body was not here within {SECONDS:.0f} s") from None
        finally:
            self._held -= size

    async def _refuse(self, stream: AsyncIterator[bytes]) -> TooLarge:
        """Reads on for a moment before the refusal, so that a sender that is still writing gets to read it."""
        left = self._limit
        with suppress(TimeoutError, ClientDisconnect):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for chunk in stream:
                    left -= len(chunk)
                    if left < 0:
                        break
        return TooLarge(f"the body is larger than {bound(self._limit)}")

    def unpack(self, body: bytes, encoding: str) -> bytes:
        """The body without its Content-Encoding; "" and identity are none.

        Raises UnknownEncoding, InputError where it is damaged, TooLarge where it grows beyond the limit.
        """
        if encoding in ("", "identity"):
            return body
        if encoding != "gzip":
            raise UnknownEncoding(f"content encoding {encoding!r} is not understood; use gzip")
        return _gunzip(body, self._limit)


def _gunzip(body: bytes, limit: int) -> bytes:
    """All members of a gzip body; never holds more than `limit` bytes of it.

    It is fed in pieces, since zlib copies what it leaves: a body of a million empty members would take hours.
    """
    parts: list[bytes] = []
    size = at = 0
    whole = False
    unpacker, piece = zlib.decompressobj(_GZIP), b""
    while piece or at < len(body):
        if not piece:
            piece, at = body[at : at + _PIECE], at + _PIECE
        try:
            part = unpacker.decompress(piece, limit - size + 1)
        except zlib.error as e:
            raise InputError(f"the gzip body is damaged: {e}") from e
        parts.append(part)
        size += len(part)
        if size > limit:
            raise TooLarge(f"the body is larger than {bound(limit)} once decompressed")
        whole = unpacker.eof
        piece = unpacker.unused_data if whole else unpacker.unconsumed_tail
        if whole:
            unpacker = zlib.decompressobj(_GZIP)
    if not whole:
        raise InputError("the gzip body is cut short")
    return b"".join(parts)
