"""What a launcher finds around it: token and ring folder, each attempt's environment and checkpoint; and what of its words got lost."""

import os
import threading
from pathlib import Path

import structlog

from exporters.job.checkpoints import Mark, newest_verified
from exporters.sending.sender import SenderStats
from pipeline.secrets import ingest_token
from pipeline.settings import Settings, without_secrets
from surefoot.hook import layout

_log = structlog.get_logger()


class Search(threading.Thread):
    """Looks for the newest complete checkpoint under `root` while other things go on; `mark` holds it afterwards."""

    def __init__(self, root: Path | None) -> None:
        super().__init__(name="checkpoint-search", daemon=True)
        self.mark: Mark | None = None
        self._root = root
        self.start()

    def run(self) -> None:
        """The search itself."""
        self.mark = newest_verified(self._root) if self._root else None

    @property
    def found(self) -> Path | None:
        """The checkpoint's folder."""
        return self.mark.folder if self.mark else None

    @property
    def told(self) -> str:
        """Its step and folder, as the control contract writes them."""
        return f"{self.mark.step} {self.mark.folder}" if self.mark else ""


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


def token(settings: Settings) -> str:
    """The token for ingest; "" where there is none, or it cannot be read: the command runs unseen."""
    try:
        return ingest_token(settings)
    except OSError as e:
        _log.warning("no token for ingest: the run goes unseen", why=f"{e.filename}: {e.strerror}")
        return ""


def tell_losses(stats: SenderStats, unread: int) -> None:
    """Say what of the run's telemetry was not delivered; `unread` bytes of output were printed faster than they could be read along."""
    if unread:
        _log.warning("output was shown but not kept: the command printed faster than it could be read along", bytes=unread)
    if stats.left:
        _log.warning("ingest is away: the run's last records wait on this node for its agent, or the next run", records=stats.left)
    if any(stats.dropped.values()):
        _log.warning("telemetry was not delivered", **stats.dropped)
