"""What the values of settings may be. Pure; a refusal never repeats a value that may hold a password."""

import re
from pathlib import Path
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

HOUR, DAY, WEEK = 3600.0, 86_400.0, 604_800.0  # seconds
MIB, GIB = 1 << 20, 1 << 30
_HOST: Final = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")
_LABEL_BYTES: Final = 64  # what a ring's header has room for


def no_truth(value: Any) -> Any:
    """`value`, unless it is one of YAML's truth values, such as yes and on, which would pass for the number 1. Raises ValueError."""
    if isinstance(value, bool):
        raise ValueError("must not be a truth value (yes, no, on, off, true, false)")
    return value


def _text(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable characters")
    return value


def _label(value: str) -> str:
    if not value.strip() or value != value.strip() or len(value.encode()) > _LABEL_BYTES:
        raise ValueError(f"must be 1 to {_LABEL_BYTES} bytes, without blanks at its ends")
    return value


def _token(value: str) -> str:
    if not re.fullmatch("[!-~]*", value):
        raise ValueError("must be visible ASCII characters without blanks or line breaks, as a header carries it")
    return value


def _identifier(value: str) -> str:
    if not re.fullmatch(r"\w*", value, re.ASCII):
        raise ValueError("must be letters, digits and _")
    return value


def _some(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("must be a host name or an address, without http:// and port")
    return value


def _folder(value: Any) -> Path:
    text = str(value) if isinstance(value, str | Path) else ""
    if not text.strip() or not text.isprintable():
        raise ValueError("must be the path of a folder")
    try:
        return Path(text).expanduser().absolute()
    except (RuntimeError, OSError):  # nobody of that name; a relative path, and the current folder is gone
        raise ValueError("cannot be found from here: give the whole path, from /") from None


def _file(value: str) -> str:
    return str(_folder(value)) if value else ""


def _split(value: str) -> SplitResult:
    try:
        url = urlsplit(value)
        right = url.scheme in ("http", "https") and bool(_HOST.fullmatch(url.hostname or "")) and url.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        right = False
    if not right or not re.fullmatch("[!-~]+", value):
        raise ValueError("must be an address like http://host:8080")
    return url


def _web(value: str) -> str:
    if value:
        _split(value)
    return value


def _page(value: str) -> str:
    if value.startswith("file:"):
        if not re.fullmatch("file:///[!-~]+", value):
            raise ValueError("must be an address like http://host:9400/metrics, or a file as file:///path/name.prom")
        return value
    if not value or _split(value).username is not None:
        raise ValueError("must be an address like http://host:9400/metrics, without user and password")
    return value


def _base(value: str) -> str:
    if value and ((url := _split(value)).query or url.fragment or url.username is not None):
        raise ValueError("must be an address without user, password, ? and #")
    return value


def _store(value: str) -> str:
    if value and ((url := _split(value)).query or url.fragment or url.path.strip("/")):
        raise ValueError("must be an address like http://clickhouse:8123, without a path: database and cluster are settings of their own")
    return value


Text = Annotated[str, AfterValidator(_text)]
Label = Annotated[Text, AfterValidator(_label)]
Token = Annotated[str, AfterValidator(_token)]
Identifier = Annotated[str, AfterValidator(_identifier)]
Database = Annotated[Identifier, AfterValidator(_some)]
Name = Annotated[Text, AfterValidator(_some)]
Host = Annotated[str, AfterValidator(_host)]
Port = Annotated[int, Field(ge=1, le=65535)]
Folder = Annotated[Path, BeforeValidator(_folder)]
File = Annotated[Text, AfterValidator(_file)]
"""The path of a file, "" for none."""
WebUrl = Annotated[str, AfterValidator(_web)]
"""http or https, "" for none; it may hold a user, a password and a query."""
PageUrl = Annotated[str, AfterValidator(_page)]
"""A page that is read: http, https or file."""
BaseUrl = Annotated[str, AfterValidator(_base)]
"""What paths are put behind, "" for none."""
StoreUrl = Annotated[str, AfterValidator(_store)]
"""A ClickHouse server, "" for none."""
