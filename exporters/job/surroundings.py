"""What an attempt finds when it starts: the ring folder, its environment, the checkpoint to resume from."""

import os
import threading
from pathlib import Path

import structlog

from exporters.job.checkpoints import newest_verified
from pipeline.settings import Settings, without_secrets
from surefoot.hook import layout

_log = structlog.get_logger()


class Search(threading.Thread):
    """Looks for the newest complete checkpoint under `root` while other things go on; `found` holds it afterwards."""

    def __init__(self, root: Path | None) -> None:
        super().__init__(name="checkpoint-search", daemon=True)
        self.found: Path | None = None
        self._root = root
        self.start()

    def run(self) -> None:
        """The search itself."""
        self.found = newest_verified(self._root) if self._root else None


def environment(settings: Settings, run: str, attempt: str, checkpoints: Path | None, resume_from: str) -> dict[str, str]:
    """The environment of a command: ours without our secrets, and what its ranks and their monitors are told. What is empty is unset."""
    given = {
        layout.ENV_RUN: run,
        layout.ENV_ATTEMPT: attempt,
        layout.ENV_RING_DIR: str(settings.ring_dir),
        layout.ENV_NODE: settings.node,
        layout.ENV_CHECKPOINTS: str(checkpoints or ""),
        layout.ENV_RESUME_FROM: resume_from,
    }
    return {k: v for k, v in (without_secrets(os.environ) | given).items() if v or k not in given}


def prepare_rings(folder: Path) -> None:
    """Makes the ring folder, open to every user's ranks as /tmp is. Without it the run goes on unseen."""
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o1777)
    except FileExistsError:
        pass
    except OSError as e:
        _log.warning("no ring folder: steps will not be seen", folder=str(folder), why=e.strerror)
