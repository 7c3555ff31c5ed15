"""Whether anything new waits for launchers, for a fifth of what it costs to read what waits."""

from pipeline.queries import sql
from pipeline.queries.control import Reader


def row_count(store: Reader) -> int:
    """Rows in the tables of actions and attempts; the same number means that nothing was written."""
    return int(store.query(sql("control_rows"))[0]["row_count"])
