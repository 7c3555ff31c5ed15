"""Runs as a process of its own beside an attempt: `python -I -S probe.py SECONDS COMMAND…`, in the command's folder and environment.

Prints what the command runs with as JSON objects, one a line, each as soon as it is known: driver, packages, git.
Standard library only. Nothing of the trainer is imported: of its interpreter only `sys.path` is asked, then the
names of folders are read. git takes no lock, starts no helper of the repository's and has a time limit.
"""

import ctypes
import hashlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

COMPLETE = "complete"  # the last line has this too
_PR_SET_CHILD_SUBREAPER = 36
_ASK = "import sys; print(sys.version.split()[0]); print(*sys.path, sep='\\n')"
_ASK_LIMIT = 10.0  # seconds for an interpreter to say where its packages are
_PACKAGES = 1200
_SOURCES = ("*.py", "*.yaml", "*.yml", "*.toml", "*.sh", "*.cu", "*.cpp")  # of these, files that git does not know yet count too
_UNTRACKED = 200  # of them
_READ_BYTES = 1 << 20  # of one of them
_NAMED = 4  # files that are named
_GIT = ("-c", "core.fsmonitor=false", "-c", "core.quotePath=false", "-c", "core.hooksPath=/dev/null")
_QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_PAGER": "cat", "LC_ALL": "C"}
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", "--full-index", "--ignore-submodules=untracked")


class Trouble(Exception):
    """Why something cannot be known, for a person."""


def main(arguments: list[str]) -> int:
    """Prints the facts; gives the exit code."""
    seconds, *words = arguments
    until = time.monotonic() + float(seconds)
    os.nice(10)
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # what git leaves behind is not taken for the command's
    for number in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, lambda *_: sys.exit(1))  # and take our temporary files with us
    signal.alarm(int(float(seconds)) + 5)  # in case nobody ends us
    tell(drivers("/"))
    found = packages(words, os.environ, until)
    nccl = next((v for k, v in found.items() if k.startswith("package.nvidia-nccl-")), os.environ.get("NCCL_VERSION", ""))
    tell(found | ({"driver.nccl": nccl} if nccl else {}))
    tell(git(os.getcwd(), words, until) | {COMPLETE: "yes"})
    return 0


def tell(facts: dict[str, str]) -> None:
    """Prints facts as one line."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


# --- drivers ---------------------------------------------------------------------------------


def drivers(root: str) -> dict[str, str]:
    """The versions that the kernel under `root` tells: its own, NVIDIA's and Mellanox's driver."""
    found = {"driver.kernel": os.uname().release}
    nvidia = re.search(r"Kernel Module\s+(?:for \S+\s+)?([0-9]+(?:\.[0-9]+)+)", read(os.path.join(root, "proc/driver/nvidia/version")))
    if nvidia:
        found["driver.nvidia"] = nvidia[1]
    if mlx := read(os.path.join(root, "sys/module/mlx5_core/version")).strip():
        found["driver.mlx5_core"] = mlx
    return found


def read(path: str, limit: int = 4096) -> str:
    """The beginning of a text file; "" where there is none."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read(limit)
    except OSError:
        return ""


# --- packages --------------------------------------------------------------------------------


def packages(words: Sequence[str], environ: Mapping[str, str], until: float) -> dict[str, str]:
    """The command's Python and the packages installed for it, by name; empty where no Python is found."""
    python = interpreter(words, environ.get("PATH", ""))
    if python is None:
        return {}
    quiet = ["-E", "-s"] if environ.get("PYTHONNOUSERSITE") else ["-E"]
    try:
        out = run([python, *quiet, "-c", _ASK], "/", min(until, time.monotonic() + _ASK_LIMIT))
    except Trouble as e:
        return {"package.trouble": f"{python}: {e}"}
    version, *path = out.decode("utf-8", "replace").splitlines() or [""]
    before = [os.path.abspath(p) for p in environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    found = {f"package.{name}": text for name, text in installed([*before, *filter(None, path)]).items()}
    return {"package.python": f"{version} ({python})", **found}


def interpreter(words: Sequence[str], path: str) -> str | None:
    """The Python that a command line runs on: named in it, or by the first line of a script in it; else the one on the path."""
    for word in words[:40]:
        if word.startswith("-") or not (found := shutil.which(word, path=path)):
            continue
        if is_python(found):
            return found
        if python := of_script(found, path):
            return python
    return shutil.which("python3", path=path) or shutil.which("python", path=path)


def is_python(path: str) -> bool:
    """Whether a program is called python, python3, python3.11 …"""
    return re.fullmatch(r"(?:python|pypy)[0-9.]*", os.path.basename(path)) is not None


def of_script(path: str, search: str) -> str | None:
    """The Python that the first line of a script names (pip writes a second one where a path is too long for it)."""
    lines = read(path, 600).split("\n")[:2]
    if not lines[0].startswith("#!"):
        return None
    parts = lines[0][2:].split()
    if len(lines) > 1 and (long := re.match(r"""'''exec' ("[^"]+"|\S+)""", lines[1])):
        parts = [long[1].strip('"')]
    return next((shutil.which(p, path=search) for p in parts if is_python(p)), None)


def installed(path: Sequence[str]) -> dict[str, str]:
    """Package -> version, from the names of the folders along `path`; of two the first counts, as for Python itself."""
    found: dict[str, str] = {}
    for folder in path:
        try:
            names = sorted(os.listdir(folder))
        except OSError:  # a zip, or gone
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")) and len(found) < _PACKAGES:
                title, _, version = name.rsplit(".", 1)[0].partition("-")
                version = version.partition("-py")[0] or told_version(os.path.join(folder, name, "PKG-INFO"))
                found.setdefault(re.sub(r"[-_.]+", "-", title).lower(), version)
    return found


def told_version(path: str) -> str:
    """The version in a package's own description; "?" where there is none."""
    line = re.search(r"^Version: *(\S+)", read(path), re.MULTILINE)
    return line[1] if line else "?"


# --- git -------------------------------------------------------------------------------------


def git(folder: str, words: Sequence[str], until: float) -> dict[str, str]:
    """Commit, branch and uncommitted changes of the repository that `folder` (else the command's script) lies in."""
    program = shutil.which("git")
    if program is None:
        return {"code.trouble": "git is not installed here"}
    scripts = [os.path.dirname(os.path.abspath(w)) for w in words if w.endswith(".py") and os.path.isfile(w)]
    for place in dict.fromkeys([folder, *scripts[:1]]):
        facts: dict[str, str] = {}
        try:
            facts["code.repository"] = os.fsdecode(run([program, *_GIT, "rev-parse", "--show-toplevel"], place, until).rstrip(b"\n"))
        except Trouble as e:
            if "not a git repository" in str(e):
                continue
            return {"code.trouble": f"git: {e}"}
        try:
            facts |= commit(program, place, until)
            facts["code.diff"] = uncommitted(program, facts["code.repository"], ["HEAD"] if "code.commit" in facts else [], until)
        except Trouble as e:
            facts["code.trouble"] = f"git: {e}"
        return facts
    return {"code.trouble": f"{folder} is in no git repository"}


def commit(program: str, place: str, until: float) -> dict[str, str]:
    """The commit and the branch that are checked out; no commit where the repository has none yet."""
    try:
        branch = run([program, *_GIT, "symbolic-ref", "--short", "HEAD"], place, until).decode("utf-8", "replace").strip()
    except Trouble as e:
        if "in time" in str(e):
            raise
        branch = "none"  # a commit is checked out by itself
    try:
        told = run([program, *_GIT, "log", "-1", "--no-show-signature", "--no-color", "--format=%H %s"], place, until)
    except Trouble as e:
        if "does not have any commits" not in str(e):
            raise
        return {"code.branch": branch}
    number, _, subject = told.decode("utf-8", "replace").strip().partition(" ")
    return {"code.commit": f"{number[:12]} {subject[:100]}".strip(), "code.branch": branch}


def uncommitted(program: str, top: str, against: Sequence[str], until: float) -> str:
    """What differs from the commit: "none", or a hash of it and the files' names. Sources that git does not know yet count too.

    git diff writes what it learns of the files' times into the index: here into a copy, so that the user's own git never meets a lock.
    """
    whole = hashlib.sha256()
    with tempfile.TemporaryDirectory(prefix="surefoot-") as folder:
        index = {"GIT_INDEX_FILE": copied_index(program, top, folder, until)}
        run([program, *_GIT, *_DIFF, *against], top, until, whole.update, more=index)
        changed = run([program, *_GIT, *_DIFF, "--name-only", "-z", *against], top, until, more=index).split(b"\0")
        fresh = run([program, *_GIT, "ls-files", "-o", "--exclude-standard", "-z", "--", *_SOURCES], top, until, more=index).split(b"\0")
    fresh = [name for name in fresh if name][:_UNTRACKED]
    for name in fresh:
        whole.update(name + b"\0" + content(os.path.join(os.fsencode(top), name)))
    names = [os.fsdecode(name) for name in [*changed, *fresh] if name]
    if not names:
        return "none"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{whole.hexdigest()[:12]} in {', '.join(names[:_NAMED])}{more}"


def copied_index(program: str, top: str, folder: str, until: float) -> str:
    """A copy of the repository's index in `folder`; a name that is not there where it has none yet."""
    path = os.path.join(top, os.fsdecode(run([program, *_GIT, "rev-parse", "--git-path", "index"], top, until).rstrip(b"\n")))
    try:
        if os.path.exists(path):
            shutil.copyfile(path, os.path.join(folder, "index"))
    except OSError as e:
        raise Trouble(f"its index cannot be copied: {e.strerror}") from None
    return os.path.join(folder, "index")


def content(path: bytes) -> bytes:
    """The beginning of a regular file; empty for anything else."""
    try:
        if not os.path.isfile(path):
            return b""
        with open(path, "rb") as f:
            return f.read(_READ_BYTES)
    except OSError:
        return b""


def run(
    command: Sequence[str],
    folder: str,
    until: float,
    take: Callable[[bytes], object] | None = None,
    more: Mapping[str, str] | None = None,
) -> bytes:
    """What a command printed; where `take` is given it gets the output piece by piece instead. `more` is added to its environment.

    Raises Trouble where it fails, or is not done in time: then it is ended, and not waited for should it not die.
    """
    try:
        environment = os.environ | _QUIET | dict(more or {})
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
    except OSError as e:
        raise Trouble(f"it cannot be run: {e.strerror}") from None
    whole: list[bytes] = []
    words: list[bytes] = []
    assert process.stdout and process.stderr
    with process.stdout, process.stderr:
        done = drain({process.stdout.fileno(): take or whole.append, process.stderr.fileno(): words.append}, until)
    try:
        process.wait(max(0.1, until - time.monotonic()) if done else 0.0)
    except subprocess.TimeoutExpired:
        process.kill()
        with suppress(subprocess.TimeoutExpired):  # in D state it stays
            process.wait(0.5)
        raise Trouble("it was not done in time") from None
    if process.returncode != 0:
        lines = b"".join(words).decode("utf-8", "replace").strip().splitlines()
        raise Trouble(lines[0].removeprefix("fatal: ")[:200] if lines else f"it ended with code {process.returncode}")
    return b"".join(whole)


def drain(takers: dict[int, Callable[[bytes], object]], until: float) -> bool:
    """Hands what comes from file descriptors to their takers; False where they are not all at their end in time."""
    while takers:
        ready = select.select(list(takers), [], [], max(0.0, until - time.monotonic()))[0]
        if not ready:
            return False
        for fd in ready:
            if piece := os.read(fd, 1 << 16):
                takers[fd](piece)
            else:
                del takers[fd]
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
