"""What an attempt runs with, collected beside it: the command is started first, and is neither delayed nor blocked by this.

What we know ourselves (command line, environment, checkpoint) is taken at once; driver, packages and git are read by a
process of its own (probe.py), which is ended when it takes too long. What is known by then is sent, once.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import structlog

from exporters.job import hidden, probe
from exporters.job.attempt import Start
from exporters.job.hidden import is_secret, masked
from exporters.job.tree import Tree
from pipeline.catalog.facts import ARGV, FOLDER, IMAGE, IMAGE_VARIABLE, MAX_FACTS, MAX_NAME, MAX_TEXT, RESUMED, FactGroup
from pipeline.clock import monotonic

LIMIT: Final = 30.0  # seconds for all of it; git and the interpreter get _READ_LIMIT of them
_READ_LIMIT: Final = 20.0
_PATIENCE: Final = 1.0  # seconds that the end of a run waits for facts that are not there yet
_LOOK: Final = 0.1
_TIDY: Final = 0.5  # seconds that the probe has to remove its temporary files
_PROBE_BYTES: Final = 4 << 20  # of the probe's output

_PREFIXES: Final = ("NCCL_", "RCCL_", "TORCH_", "PYTORCH_", "TORCHINDUCTOR_", "TORCHDYNAMO_", "CUDA_", "CUBLAS_", "CUDNN_", "NVTE_")
_MORE_PREFIXES: Final = ("UCX_", "GLOO_", "FI_", "OFI_", "OMP_", "MKL_", "KMP_", "OMPI_MCA_", "TRITON_", "XLA_", "HIP_", "HSA_", "ROCR_")
_NAMES: Final = frozenset(
    {"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHASHSEED", "VIRTUAL_ENV", "CONDA_DEFAULT_ENV", "TOKENIZERS_PARALLELISM"}
    | {"NVIDIA_VISIBLE_DEVICES", "NVIDIA_PYTORCH_VERSION", "SLURM_JOB_PARTITION", "MALLOC_CONF", "MALLOC_ARENA_MAX", "HF_HUB_OFFLINE"}
)
_OF_PLACE: Final = ("WORLD_SIZE", "NNODES", "SLURM_JOB_NODELIST", "SLURM_NNODES")  # of the environment what says where it runs, not how
_IMAGES: Final = (IMAGE_VARIABLE, "CONTAINER_IMAGE_DIGEST", "IMAGE_DIGEST", "CONTAINER_IMAGE", "DOCKER_IMAGE", "APPTAINER_CONTAINER")
_MORE_IMAGES: Final = ("SINGULARITY_CONTAINER", "SLURM_CONTAINER")
_OF_PROBE: Final = frozenset(
    {"PATH", "HOME", "USER", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONNOUSERSITE", "VIRTUAL_ENV", "XDG_CONFIG_HOME", "NCCL_VERSION"}
    | {"GIT_DIR", "GIT_WORK_TREE", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"}
)  # of the command's environment: nothing that holds a secret
_OF_SHIMS: Final = ("PYENV_", "CONDA_", "ASDF_")  # without these, what they put on the path finds no Python

_log = structlog.get_logger()


def own_facts(command: Sequence[str], environment: Mapping[str, str], folder: str, resumed_from: str) -> dict[str, str]:
    """What is known without looking anywhere: the command line, the folder, the image, and the allowed environment, secrets hidden."""
    image = next((environment[name] for name in (*_IMAGES, *_MORE_IMAGES) if environment.get(name)), "")
    told = {
        ARGV: hidden.told(command),
        FOLDER: folder,
        IMAGE: masked(image),
        RESUMED: resumed_from or "the start",
    }
    told |= {f"env.{name}": masked(value) for name, value in environment.items() if _allowed(name)}
    told |= {f"{FactGroup.PLACE}.{name}": masked(environment[name]) for name in _OF_PLACE if name in environment}
    return {name: value for name, value in told.items() if value}


def _allowed(name: str) -> bool:
    return (name in _NAMES or name.startswith((*_PREFIXES, *_MORE_PREFIXES))) and not is_secret(name)


def capped(facts: Mapping[str, str]) -> dict[str, str]:
    """The facts within the limits of the catalogue: long texts are cut; of too many, packages go first."""
    ordered = sorted(facts, key=lambda name: name.startswith("package."))
    return {name[:MAX_NAME]: facts[name][:MAX_TEXT] for name in ordered[:MAX_FACTS]}


Send = Callable[[str, Mapping[str, str]], None]
Told = Callable[[Mapping[str, str]], None]


class Facts:
    """Collects the facts of a run's attempts and hands them to `send` (attempt, facts), each attempt's once.

    `given` is the command as it was given: the same on all nodes, with what each is told not filled in.
    """

    def __init__(self, tree: Tree, send: Send, given: Sequence[str] = ()) -> None:
        self._tree, self._send, self._given = tree, send, given
        self._current: _Collecting | None = None

    def begin(self, start: Start) -> None:
        """Begins to collect for an attempt that was just started. In the main thread, as it adds a helper to the tree. Never raises."""
        if self._current:
            self._current.hurry.set()
        try:
            own = own_facts(self._given or start.command, start.environment, _folder(), start.resume_from)
            process = _start(start)
            if process:
                self._tree.disown(process.pid)
            self._current = _Collecting(own, process, lambda facts: self._send(start.attempt, facts), self._tree.forget)
            self._current.start()
        except (OSError, RuntimeError, ValueError) as e:  # no process or thread to be had: the run goes on without
            _log.warning("what the attempt runs with is not recorded", why=str(e))

    def close(self) -> None:
        """At the end of the run: what is not there within a second is not waited for."""
        if self._current and self._current.is_alive():
            self._current.join(_PATIENCE)
            self._current.hurry.set()
            self._current.join(_PATIENCE)


class _Collecting(threading.Thread):
    """Reads one probe to its end, or until `hurry` is set or the time is over."""

    def __init__(self, own: dict[str, str], process: subprocess.Popen[bytes] | None, send: Told, forget: Callable[[int], None]) -> None:
        super().__init__(name="attempt-facts", daemon=True)
        self.hurry = threading.Event()
        self._own, self._process, self._send, self._forget = own, process, send, forget
        self._until = monotonic() + LIMIT

    def run(self) -> None:
        """Reads, ends the probe, sends."""
        found = self._read(self._process) if self._process else {"code.trouble": "no process could be started to look"}
        if self._process:
            self._end(self._process)
        self._send(capped(self._own | found))

    def _read(self, process: subprocess.Popen[bytes]) -> dict[str, str]:
        assert process.stdout
        text, poll = b"", select.poll()
        poll.register(process.stdout)
        while not self.hurry.is_set() and monotonic() < self._until and len(text) < _PROBE_BYTES:
            if not poll.poll(_LOOK * 1000):
                continue
            piece = os.read(process.stdout.fileno(), 1 << 16)
            text += piece
            if not piece:
                found = _parsed(text)
                return found if found.pop(probe.COMPLETE, "") else {"code.trouble": "looking broke off"} | found
        why = "the attempt was over before all was read" if self.hurry.is_set() else f"not all could be read within {LIMIT:g} s"
        return {"code.trouble": why} | _parsed(text)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """Ends the probe and what it started. One that cannot die (in D state) is left, and stays known as ours."""
        assert process.stdout
        process.stdout.close()
        os.kill(process.pid, signal.SIGTERM)  # it tidies up; its number is its own until it is waited for, also where it has ended
        until = monotonic() + _TIDY
        while monotonic() < until and not os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            time.sleep(_TIDY / 20)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE)
            self._forget(process.pid)


def _start(start: Start) -> subprocess.Popen[bytes] | None:
    command = [sys.executable, "-I", "-S", probe.__file__, f"{_READ_LIMIT:g}", *start.command]
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name, value in start.environment.items() if name in _OF_PROBE or name.startswith(_OF_SHIMS)},
            process_group=0,
        )
    except OSError:
        return None


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


def _parsed(text: bytes) -> dict[str, str]:
    """The facts of all whole lines."""
    found: dict[str, str] = {}
    for line in text.split(b"\n")[:-1]:
        with suppress(ValueError):
            given = json.loads(line)
            found |= {k: v for k, v in given.items() if isinstance(v, str)} if isinstance(given, dict) else {}
    return found
