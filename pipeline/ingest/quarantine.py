"""Where batches go that the store refuses for good: kept as JSON lines beside the reason, never in the way."""

import json
from pathlib import Path
from typing import Any, Final

from pipeline.errors import StoreError
from pipeline.ingest.batches import Batch
from pipeline.records import Record

CAP_BYTES: Final = 256 << 20
SUFFIX: Final = ".jsonl"


class Quarantine:
    """The folder of refused batches, of at most `cap_bytes`: beyond that only the reason of a batch is kept."""

    def __init__(self, directory: Path, cap_bytes: int = CAP_BYTES) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._left = cap_bytes - sum(p.stat().st_size for p in directory.glob("*" + SUFFIX))

    def put(self, batch: Batch, error: Exception) -> Path:
        """Keeps a batch: a line of what went wrong, then a line a row. The same batch twice is one file.

        Raises OSError where the disk refuses.
        """
        reason = {
            "token": batch.token,
            "table": batch.table,
            "rows": len(batch.rows),
            "code": error.code if isinstance(error, StoreError) else 0,
            "reason": f"{type(error).__name__}: {error}",
        }
        rows = "".join(json.dumps(_plain(row), default=str) + "\n" for row in batch.rows)
        text = json.dumps(reason) + "\n" + (rows if len(rows) <= self._left else "")
        path = self._directory / (batch.token.replace(":", ".").replace("/", ".") + SUFFIX)
        if not path.exists():
            self._left -= len(text)
        path.write_text(text, encoding="utf-8")
        return path


def _plain(row: Any) -> Any:
    return row.attributes() if isinstance(row, Record) else row
