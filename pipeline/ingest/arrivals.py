"""What the spool keeps of a request: its body as it came, and what it takes to read it again the same way."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from pipeline.clock import from_micros, to_micros
from pipeline.errors import InputError
from pipeline.otlp import decode as otlp
from pipeline.otlp.decoded import Decoded
from pipeline.records import Beat, Request


class Form(StrEnum):
    """What the body of an arrival is."""

    OTLP = "otlp"
    BEATS = "beats"  # made here; JSON
    REQUESTS = "requests"  # the same


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request body, received at `received`. `batch` is the sender's id of it ("" where it gave none)."""

    form: Form
    received: datetime
    body: bytes
    batch: str = ""
    signal: otlp.Signal = otlp.Signal.LOGS
    content_type: otlp.ContentType = otlp.ContentType.PROTOBUF
    hurried: bool = False

    def to_bytes(self) -> bytes:
        """A header line of JSON, then the body."""
        head = {
            "form": self.form,
            "received": to_micros(self.received),
            "batch": self.batch,
            "signal": self.signal,
            "content_type": self.content_type,
            "hurried": self.hurried,
        }
        return json.dumps(head).encode() + b"\n" + self.body

    @classmethod
    def from_bytes(cls, payload: bytes) -> "Arrival":
        """What `to_bytes` gave; raises InputError for anything else."""
        head, _, body = payload.partition(b"\n")
        try:
            h = json.loads(head)
            return cls(
                Form(h["form"]),
                from_micros(h["received"]),
                body,
                h["batch"],
                otlp.Signal(h["signal"]),
                otlp.ContentType(h["content_type"]),
                h["hurried"],
            )
        except (ValueError, KeyError, TypeError) as e:
            raise InputError(f"an entry of the spool has no header that can be read: {e}") from e

    def decode(self) -> Decoded:
        """The rows it holds, the same on every call. Raises InputError where the body cannot be read."""
        if self.form is Form.OTLP:
            return otlp.decode(self.signal, self.content_type, self.body, self.received)
        try:
            given = json.loads(self.body)
        except ValueError as e:
            raise InputError(f"an entry of the spool cannot be read: {e}") from e
        if self.form is Form.REQUESTS:
            asked = [Request.from_attributes(attributes) for attributes in given]
            return Decoded({Request: [*asked]}, kept=len(asked))
        beats = [Beat.from_attributes(attributes) for attributes in given]
        return Decoded({Beat: [*beats]}, kept=len(beats), hurried=self.hurried)


def of_beats(beats: Sequence[Beat], received: datetime, *, hurried: bool = False) -> Arrival:
    """Signs of life as an arrival; `hurried` where they must be queryable at once."""
    body = json.dumps([beat.attributes() for beat in beats]).encode()
    return Arrival(Form.BEATS, received, body, hurried=hurried)


def of_request(request: Request, received: datetime) -> Arrival:
    """What a person asked for elsewhere, as an arrival; the same intent twice is kept once."""
    return Arrival(Form.REQUESTS, received, json.dumps([request.attributes()]).encode(), f"request-{request.intent}")
