"""Settings in the environment: which variables there are, and what is wrong with those that are set.

pydantic-settings overlooks a variable that it does not know, and breaks on one that is not the JSON it expects.
"""

import json
import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pipeline.catalog.facts import IMAGE_VARIABLE
from pipeline.errors import SettingsError
from surefoot.hook import layout

PREFIX: Final = "SUREFOOT_"
CONFIG: Final = "SUREFOOT_CONFIG"
NOT_SETTINGS: Final = frozenset({CONFIG, IMAGE_VARIABLE, "SUREFOOT_TEST_CLICKHOUSE_URL", *layout.ENVIRONMENT})

Fields = Mapping[str, FieldInfo]
"""The settings by name; a group of them has a model as its annotation."""


def take(fields: Fields) -> None:
    """`SUREFOOT_X_FILE` becomes `SUREFOOT_X`, for this process and its children; then every variable is looked at.

    Raises SettingsError, one line, for a variable that is no setting or can be none, or a file that holds no text.
    """
    for name in [n for n in os.environ if n.startswith(PREFIX) and n.endswith("_FILE")]:
        plain = name.removesuffix("_FILE")
        if not _is_setting(fields, plain):
            raise _unknown(fields, name)
        os.environ[plain] = _read(name)
        del os.environ[name]
    for name, value in os.environ.items():
        if name.startswith(PREFIX) and name not in NOT_SETTINGS and not _is_setting(fields, name):
            raise _unknown(fields, name)
        if _holds_json(fields, name):
            _check_json(name, value)


def variable(key: str) -> str:
    """The environment's name of a setting: SUREFOOT_INGEST__PORT for ingest.port."""
    return PREFIX + key.upper().replace(".", "__")


def keys(fields: Fields) -> Iterator[str]:
    """Every setting's dotted name, groups first."""
    for name in fields:
        yield name
        yield from (f"{name}.{inner}" for inner in group(fields, name))


def group(fields: Fields, key: str) -> Fields:
    """The settings of the group of that name; none where it is a setting itself, or nothing."""
    kind = fields[key].annotation if key in fields else None
    return kind.model_fields if isinstance(kind, type) and issubclass(kind, BaseModel) else {}


def _read(name: str) -> str:
    try:
        text = Path(os.environ[name]).read_text(encoding="utf-8").strip()
    except OSError as e:
        raise SettingsError(f"cannot read the file that {name} names: {e.strerror}") from e
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SettingsError(f"the file that {name} names does not hold text")
    return text


def _check_json(name: str, text: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as e:
        raise SettingsError(f"{name} in the environment is not valid JSON: {e.msg} at character {e.pos + 1}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits; too deep
        raise SettingsError(f"{name} in the environment is not JSON that can be read") from None


def _unknown(fields: Fields, name: str) -> SettingsError:
    known = [key.upper().replace(".", "__") for key in keys(fields)] + [n.removeprefix(PREFIX) for n in NOT_SETTINGS]
    near = get_close_matches(name.removeprefix(PREFIX), known, 1)
    every = ", ".join(variable(key) + ("__*" if group(fields, key) else "") for key in fields)
    return SettingsError(
        f"unknown setting {name} in the environment; {f'did you mean {PREFIX}{near[0]}?' if near else f'known are {every}'}"
    )


def _path(name: str) -> list[str]:
    """The keys that a variable names: ["ingest", "port"] for SUREFOOT_INGEST__PORT, in any case, as pydantic-settings takes it."""
    return name.upper().removeprefix(PREFIX).lower().split("__") if name.upper().startswith(PREFIX) else []


def _is_setting(fields: Fields, name: str) -> bool:
    """Whether a variable belongs to a setting or a group of them; what is wrong inside a group is found with its file's keys."""
    key, *inner = _path(name)
    return key in fields and (not inner or bool(group(fields, key)))


def _holds_json(fields: Fields, name: str) -> bool:
    match _path(name):
        case [key] if key in fields:
            return bool(group(fields, key)) or get_origin(fields[key].annotation) is tuple
        case [key, inner] if inner in (inside := group(fields, key)):
            return get_origin(inside[inner].annotation) in (dict, tuple)
    return False
