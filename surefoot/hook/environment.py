"""What the environment says about this process: its run, attempt, node and rank. Pure, over a mapping."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from surefoot.hook.layout import ENV_ATTEMPT, ENV_DISABLED, ENV_NODE, ENV_RING_DIR, ENV_RUN
from surefoot.hook.ring import Identity

DEFAULT_RING_DIR: Final = "/dev/shm/surefoot"
_RANK: Final = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
_LOCAL_RANK: Final = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
_WORLD_SIZE: Final = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE")
_INNER_RESTARTS: Final = ("TORCHELASTIC_RESTART_COUNT",)


def why_off(environ: Mapping[str, str]) -> str:
    """Why there is nothing to record, "" where there is."""
    if environ.get(ENV_DISABLED):
        return f"{ENV_DISABLED} is set"
    return "" if environ.get(ENV_ATTEMPT) else f"{ENV_ATTEMPT} is not set: not started by `surefoot run`"


def identity(environ: Mapping[str, str], host: str, created: int) -> Identity:
    """Who this process is. An inner torchrun restart is an attempt of its own. A number that is none counts as absent."""
    attempt = environ.get(ENV_ATTEMPT, "")
    restarts = _number(environ, _INNER_RESTARTS, 0)
    return Identity(
        run=environ.get(ENV_RUN, ""),
        attempt=f"{attempt}.{restarts}" if restarts else attempt,
        node=(environ.get(ENV_NODE) or host).lower(),
        rank=_number(environ, _RANK, 0),
        local_rank=_number(environ, _LOCAL_RANK, 0),
        world_size=_number(environ, _WORLD_SIZE, 1),
        created=created,
    )


def ring_dir(environ: Mapping[str, str]) -> Path:
    """The folder of the rings."""
    return Path(environ.get(ENV_RING_DIR) or DEFAULT_RING_DIR)


def _number(environ: Mapping[str, str], names: tuple[str, ...], absent: int) -> int:
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdecimal() and int(text) < 2**32:
            return int(text)
    return absent
