"""Kinds of values that options of the command line take, beyond click's own."""

import math
import os
from pathlib import Path

import click

from pipeline.catalog.facts import MAX_WHAT
from pipeline.catalog.runs import check_run
from pipeline.errors import InputError


class Seconds(click.FloatRange):
    """A number within bounds. Click lets nan through, which no comparison holds back."""

    name = "seconds"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = float(super().convert(value, param, ctx))  # type: ignore[arg-type]  # what click's own takes
        if not math.isfinite(number):
            self.fail(f"{number} is not in the range {self._describe_range()}.", param, ctx)
        return number


class Folder(click.Path):
    """A folder, there or not. An empty name would be the current one."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, file_okay=False)

    def convert(
        self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        if value == "":
            self.fail("it must not be empty.", param, ctx)
        return super().convert(value, param, ctx)


class Sentence(click.ParamType[str]):
    """A sentence that stands in pages, tables and terminals: one line of printable text, not without bounds, nor empty unless `empty`."""

    name = "text"

    def __init__(self, *, empty: bool = False) -> None:
        self._empty = empty

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = " ".join(str(value).split())
        name = param.opts[0] if param else "it"
        if len(text) > MAX_WHAT or not (text or self._empty):
            raise InputError(f"{name} must be 1 to {MAX_WHAT} characters: a sentence for whoever reads it later")
        if not text.isprintable():
            raise InputError(f"{name} must be plain text, without control characters")
        return text


class RunId(click.ParamType[str]):
    """A run's name, held to the rule for them."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        check_run(str(value))
        return str(value)
