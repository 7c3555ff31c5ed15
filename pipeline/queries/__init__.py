"""Read models: each is a function with its SQL file of the same name beside it. SQL stands nowhere else."""

from functools import cache
from importlib.resources import files


@cache
def sql(name: str) -> str:
    """The text of `pipeline/queries/<name>.sql`."""
    return (files(__name__) / f"{name}.sql").read_text(encoding="utf-8")
