"""`docs/settings.md`, made from the settings themselves: `python -m surefoot.settings_page > docs/settings.md`."""

import sys
from inspect import cleandoc
from typing import Any, Final

from annotated_types import Ge, Gt, Le
from pydantic_core import PydanticUndefined

from pipeline.setting_environment import variable
from pipeline.settings import Part, ScrapeSettings, Settings

HEAD = """# Settings

Each can stand in the YAML file (`--config FILE` or `SUREFOOT_CONFIG`) or in the environment, which wins. `NAME_FILE` reads the value
of `NAME` from a file. Times are seconds, sizes bytes. Made from the code; do not edit.
"""


LISTED: Final = {"agent.scrape": ScrapeSettings}
"""Settings of what stands in a list of any length, by the list's key."""


def page() -> str:
    """The whole page."""
    single = [_row(name, name, info) for name, info in Settings.model_fields.items() if not _is_part(info)]
    parts = [_part(name, info.annotation) for name, info in Settings.model_fields.items() if _is_part(info)]
    listed = [_listed(name, part) for name, part in LISTED.items()]
    return "\n".join([HEAD, *_table(single), *parts, *listed]) + "\n"


def _is_part(info: Any) -> bool:
    return isinstance(info.annotation, type) and issubclass(info.annotation, Part)


def _part(name: str, part: Any) -> str:
    rows = [_row(field, f"{name}.{field}", info) for field, info in part.model_fields.items() if not _is_part(info)]
    inner = [_part(f"{name}.{field}", info.annotation) for field, info in part.model_fields.items() if _is_part(info)]
    return "\n".join([f"\n## {name}\n", *cleandoc(part.__doc__ or "").splitlines(), "", *_table(rows), *inner])


def _listed(name: str, part: type[Part]) -> str:
    """A table of what one entry of a list holds; none has a variable of its own."""
    rows = [_row(field, "", info) for field, info in part.model_fields.items()]
    return "\n".join([f"\n## Each of {name}\n", *cleandoc(part.__doc__ or "").splitlines(), "", *_table(rows)])


def _table(rows: list[str]) -> list[str]:
    return ["| key | default | range | environment |", "|---|---|---|---|", *rows]


def _row(name: str, key: str, info: Any) -> str:
    named = f"`{variable(key)}`" if key else ""
    return f"| `{name}` | {_default(info)} | {_range(info)} | {named} |"


def _range(info: Any) -> str:
    """The bounds of a number, "" for what is none."""
    lower = [f"above {m.gt:g}," if isinstance(m, Gt) else f"{m.ge:.16g}" for m in info.metadata if isinstance(m, Gt | Ge)]
    upper = [f"{m.le:.16g}" for m in info.metadata if isinstance(m, Le)]
    return " to ".join(lower + upper)


def _default(info: Any) -> str:
    if name := getattr(info.default_factory, "__name__", ""):
        made = info.default_factory() if name == "<lambda>" and isinstance(info.default_factory(), dict) else None
        return "this machine's name" if made is None and name == "<lambda>" else f"`{made or {}}`"
    if isinstance(info.default, tuple):
        return "`[{kind: log}]`" if info.default else "none"
    if info.default is PydanticUndefined:
        return "required"
    return f"`{info.default}`" if info.default not in ("", ()) else "none"


if __name__ == "__main__":
    sys.stdout.write(page())
