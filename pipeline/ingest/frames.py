"""The frames of a spool file: type, length, checksum, payload. Pure; standard library only."""

import struct
import zlib
from collections.abc import Iterator
from typing import Final

ENTRY: Final = 1
MARK: Final = 2  # ends a chunk of entries; no payload
_HEAD: Final = struct.Struct("<BII")  # type, length, crc32 of type, length and payload
_CHECKED: Final = struct.Struct("<BI")


def frames(data: bytes) -> Iterator[tuple[int, bytes, int]]:
    """Each whole frame at the beginning of `data`: its type, its payload and where it ends."""
    at = 0
    while at + _HEAD.size <= len(data):
        kind, length, crc = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        if kind not in (ENTRY, MARK) or end > len(data):
            return
        payload = data[at + _HEAD.size : end]
        if zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, length))) != crc:
            return
        yield kind, payload, end
        at = end


def frame_of(kind: int, payload: bytes) -> bytes:
    """A frame of `kind` around `payload`."""
    crc = zlib.crc32(payload, zlib.crc32(_CHECKED.pack(kind, len(payload))))
    return _HEAD.pack(kind, len(payload), crc) + payload
