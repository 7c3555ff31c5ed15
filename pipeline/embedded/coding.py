"""HTTP bodies: read with their transfer and content coding undone and their size bounded, and compressed on the way out."""

import sys
import zlib
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from typing import Protocol

import lz4.frame

from pipeline.errors import InputError, TooLarge
from pipeline.sizes import bound

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PIECE = 256 << 10
SMALLEST_COMPRESSED = 1 << 10


class Encoder(Protocol):
    """Compresses a stream piece by piece."""

    def begin(self) -> bytes:
        """What stands before the first piece."""
        ...

    def encode(self, data: bytes) -> bytes:
        """`data` compressed, as far as the codec gives it away already."""
        ...

    def end(self) -> bytes:
        """The rest."""
        ...


class Identity:
    """No compression."""

    def begin(self) -> bytes:
        """Nothing."""
        return b""

    def encode(self, data: bytes) -> bytes:
        """`data` itself."""
        return data

    def end(self) -> bytes:
        """Nothing."""
        return b""


class Lz4:
    """LZ4 frames."""

    def __init__(self) -> None:
        self._codec = lz4.frame.LZ4FrameCompressor()

    def begin(self) -> bytes:
        """The frame's head."""
        return bytes(self._codec.begin())

    def encode(self, data: bytes) -> bytes:
        """`data` in blocks."""
        return bytes(self._codec.compress(data))

    def end(self) -> bytes:
        """The frame's end."""
        return bytes(self._codec.flush())


class Zstd(Identity):
    """Zstandard at its fastest useful level."""

    def __init__(self) -> None:
        self._codec = zstd.ZstdCompressor(level=1)

    def encode(self, data: bytes) -> bytes:
        """`data` compressed."""
        return self._codec.compress(data)

    def end(self) -> bytes:
        """The frame's end."""
        return self._codec.flush()


class Gzip(Identity):
    """gzip at its fastest level."""

    def __init__(self) -> None:
        self._codec = zlib.compressobj(1, zlib.DEFLATED, 31)

    def encode(self, data: bytes) -> bytes:
        """`data` compressed."""
        return self._codec.compress(data)

    def end(self) -> bytes:
        """The trailer."""
        return self._codec.flush()


ENCODERS: dict[str, Callable[[], Encoder]] = {"lz4": Lz4, "zstd": Zstd, "gzip": Gzip}
"""By content coding, the cheapest first."""


def accepted(header: str) -> str:
    """The coding to answer with, of those that an Accept-Encoding header names; "" for none."""
    offered = {part.split(";")[0].strip().lower() for part in header.split(",")}
    return next((name for name in ENCODERS if name in offered), "")


def raw_pieces(source: BufferedIOBase, length: int | None) -> Iterator[bytes]:
    """The body as it was sent: `length` bytes, or for None chunks until the empty one.

    Raises InputError where the sender stops in the middle or breaks the chunk format.
    """
    if length is not None:
        while length > 0:
            piece = source.read(min(PIECE, length))
            if not piece:
                raise InputError("the request's body ended early")
            length -= len(piece)
            yield piece
        return
    while size := _chunk_size(source.readline(1024)):
        yield from raw_pieces(source, size)
        source.readline(1024)
    while source.readline(1024).strip():  # trailers
        pass


def _chunk_size(line: bytes) -> int:
    try:
        return int(line.split(b";")[0], 16)
    except ValueError:
        raise InputError("the request's body is not well-formed chunks") from None


def decoded(pieces: Iterator[bytes], coding: str, limit: int) -> Iterator[bytes]:
    """`pieces` with `coding` ("" or identity, gzip, deflate, lz4, zstd) undone.

    Raises TooLarge once more than `limit` bytes came, before or after; InputError for an unknown coding or broken data.
    """
    return _bounded(_decompressed(_bounded(pieces, limit), coding), limit)


def _bounded(pieces: Iterator[bytes], limit: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > limit:
            raise TooLarge(f"the request's body is over {bound(limit)}")
        yield piece


def _decompressed(pieces: Iterator[bytes], coding: str) -> Iterator[bytes]:
    if coding in ("", "identity"):
        yield from pieces
    elif coding in ("gzip", "deflate"):
        yield from _inflated(pieces, 31 if coding == "gzip" else 15)
    elif coding in ("lz4", "zstd"):
        yield from _framed(pieces, lz4.frame.LZ4FrameDecompressor if coding == "lz4" else zstd.ZstdDecompressor)
    else:
        raise InputError(f"content coding {coding!r} is not known here; send gzip, lz4 or zstd")


def _inflated(pieces: Iterator[bytes], window: int) -> Iterator[bytes]:
    codec = zlib.decompressobj(window)
    try:
        for piece in pieces:
            while piece:
                if codec.eof:
                    raise InputError("the request's body goes on after its compressed stream")
                yield codec.decompress(piece, PIECE)
                piece = codec.unused_data or codec.unconsumed_tail
    except zlib.error as e:
        raise InputError(f"the request's body does not decompress: {e}") from e
    if not codec.eof:
        raise InputError("the request's compressed body ended early")


def _framed(pieces: Iterator[bytes], make: Callable[[], lz4.frame.LZ4FrameDecompressor | zstd.ZstdDecompressor]) -> Iterator[bytes]:
    codec = make()
    try:
        for piece in pieces:
            if codec.eof:
                raise InputError("the request's body goes on after its compressed frame")
            yield codec.decompress(piece, PIECE)
            while not codec.needs_input and not codec.eof:
                yield codec.decompress(b"", PIECE)
    except (RuntimeError, EOFError, zstd.ZstdError) as e:
        raise InputError(f"the request's body does not decompress: {e}") from e
    if not codec.eof:
        raise InputError("the request's compressed body ended early")
