"""Multipart forms, in which clients send a query whose parameters are too long for a URL."""

from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Final

from pipeline.errors import InputError, TooLarge
from pipeline.sizes import bound

FORM_BYTES: Final = 16 << 20


def is_form(content_type: str) -> bool:
    """Whether a body of this type is a form."""
    return content_type.lower().startswith("multipart/form-data")


def fields(content_type: str, body: Iterator[bytes]) -> dict[str, str]:
    """The fields of a form, as parameters of a URL. Raises InputError for what is no such form or holds a file, TooLarge."""
    whole = bytearray(f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace"))
    for piece in body:
        whole += piece
        if len(whole) > FORM_BYTES:
            raise TooLarge(f"the form is over {bound(FORM_BYTES)}")
    form = BytesParser(policy=HTTP).parsebytes(bytes(whole))
    if not form.is_multipart() or form.defects:
        raise InputError("the body is no multipart form")
    found: dict[str, str] = {}
    for part in form.iter_parts():
        name = part.get_param("name", header="content-disposition")
        content = part.get_payload(decode=True)
        if not isinstance(name, str) or not name or not isinstance(content, bytes):
            raise InputError("a field of the form has no name")
        if part.get_filename() is not None:
            raise InputError(f"the field {name} is a file: tables cannot be sent with a query here")
        try:
            found[name] = content.decode()
        except UnicodeDecodeError as e:
            raise InputError(f"the field {name} is not UTF-8: {e}") from None
    return found
