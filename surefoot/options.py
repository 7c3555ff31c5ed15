"""Kinds of values that options of the command line take, beyond click's own."""

import math
import os
from pathlib import Path

import click

from pipeline.catalog.runs import check_run


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


class RunId(click.ParamType[str]):
    """A run's name, held to the rule for them."""

    name = "name"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        check_run(str(value))
        return str(value)
