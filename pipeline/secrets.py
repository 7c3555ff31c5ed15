"""Secrets that Surefoot makes for itself at first start: a file each, readable by its owner alone."""

import errno
import os
from pathlib import Path
from secrets import token_urlsafe

from pipeline.settings import Settings


def secret(path: Path) -> str:
    """The secret kept in `path`; made now where there is none. Two processes that start together get the same one.

    Raises OSError where it cannot be had, also for a file that holds none: an empty token would let everybody in.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    if not path.exists():
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(token_urlsafe(32))
        try:
            os.link(fresh, path)  # never overwrites, and the file is whole from the start
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    kept = path.read_bytes().strip()
    if not kept or not all(0x21 <= byte <= 0x7E for byte in kept):
        raise OSError(errno.EINVAL, "it holds no secret: remove it, and a new one is made", str(path))
    return kept.decode()


def store_password(settings: Settings) -> str:
    """The password for the store: the one that is set, else the one that the embedded store made.

    Raises FileNotFoundError where there is none: no store was ever started here, and one who only asks leaves nothing behind.
    """
    if settings.store.password or settings.store_url:
        return settings.store.password
    path = settings.state_dir / "store.secret"
    if not path.exists():
        raise FileNotFoundError(errno.ENOENT, "no store was started here", str(path))
    return secret(path)


def own_store_password(settings: Settings) -> str:
    """The same for the embedded store itself, which makes one where there is none."""
    return settings.store.password or secret(settings.state_dir / "store.secret")


def ingest_token(settings: Settings) -> str:
    """The bearer token that ingest asks for: the one that is set, else the one that ingest made on this machine.

    Raises OSError where there is none: one that was made here would be another than ingest's.
    """
    path = settings.state_dir / "ingest.token"
    if not settings.ingest.token and not path.exists():
        raise FileNotFoundError(errno.ENOENT, "there is no token: set ingest.token to ingest's, or copy its file ingest.token", str(path))
    return settings.ingest.token or secret(path)


def own_ingest_token(settings: Settings) -> str:
    """The same for ingest itself, which makes one where there is none."""
    return settings.ingest.token or secret(settings.state_dir / "ingest.token")
