"""A real store for every room: one embedded store process a test session, and a fresh, migrated database a test.

`store` is what most tests want. `store_settings` are the settings that lead to it (same database), for code that
connects itself or for child processes (`store_environment`). `start_store` starts further store processes, for tests that stop or kill one.
Mind the tables' TTL: rows of `live` and `beats` older than two days, of `logs` and `samples` older than 14, vanish at
once: use times near now.
`SUREFOOT_TEST_CLICKHOUSE_URL` names a real ClickHouse server to use instead of the embedded one.
"""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from pipeline.errors import StoreUnavailable
from pipeline.migrate import migrate
from pipeline.secrets import store_password
from pipeline.settings import Settings, StoreSettings
from pipeline.store import Store
from surefoot.drill.stack import free_ports

ROOT = Path(__file__).resolve().parents[1]
SERVE = "from pipeline.embedded.process import serve; from pipeline.settings import load; serve(load())"
_numbers = itertools.count(1)
hypothesis.settings.register_profile("unhurried", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("unhurried")  # a machine that pauses is no defect of what is tested
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a script's background job: what we start would ignore it, too
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/exporters/test_golden_agent.py --write-golden` writes the whole agent's golden pages anew, for a person to review."""
    parser.addoption("--write-golden", action="store_true", help="write the golden output of the whole agent; review the difference")


@dataclass
class StoreProcess:
    """A running `surefoot store`."""

    settings: Settings
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        """Where it answers, without credentials."""
        return f"http://{self.settings.store.host}:{self.settings.store.port}"

    @property
    def password(self) -> str:
        """The password of user default."""
        return store_password(self.settings)

    def connect(self, database: str = "default") -> Store:
        """A Store on it."""
        return Store.connect(self.settings, database=database)

    def stop(self, number: int = signal.SIGTERM, seconds: float = 30.0) -> int:
        """Send a signal, wait for the end, give the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(seconds)


def environment(settings: Settings) -> dict[str, str]:
    """The environment of a child process of ours that shall use `settings`' store, and nothing of the caller's own Surefoot."""
    bare = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_") and k.lower() not in ("http_proxy", "https_proxy")}
    ours = {
        "PYTHONPATH": str(ROOT),
        "SUREFOOT_STATE_DIR": str(settings.state_dir),
        "SUREFOOT_STORE__PORT": str(settings.store.port),
        "SUREFOOT_STORE__DATABASE": settings.store.database,
        "SUREFOOT_STORE__PASSWORD": settings.store.password,
        "SUREFOOT_STORE__MEMORY_BYTES": str(settings.store.memory_bytes),
        "SUREFOOT_STORE__QUERY_SECONDS": str(settings.store.query_seconds),
    }
    if settings.store_url:
        ours["SUREFOOT_STORE__URL"] = settings.store_url
    return bare | ours


def launch(state_dir: Path, port: int | None = None, *, wait: float = 60.0) -> StoreProcess:
    """Start a store process over `state_dir` and wait until it answers (wait=0: do not wait)."""
    store = StoreSettings(port=port or free_ports(1)[0], memory_bytes=1 << 30)
    settings = Settings(state_dir=state_dir, store=store)
    state_dir.mkdir(parents=True, exist_ok=True)
    log = state_dir / "store.log"
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVE], env=environment(settings), cwd=state_dir, stdout=out, stderr=subprocess.STDOUT
        )
    started = StoreProcess(settings, process, log)
    if wait:
        _await_answer(started, wait)
    return started


def _await_answer(started: StoreProcess, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and started.process.poll() is None:
        try:
            started.connect().close()
        except StoreUnavailable:
            time.sleep(0.05)
        else:
            return
    started.stop(signal.SIGKILL)
    raise AssertionError(f"the store did not start: {started.log.read_text(errors='replace')[-2000:]}")


@pytest.fixture(scope="session", autouse=True)
def hangups() -> None:
    """Lets SIGHUP be heard by tests and by what they start, also where they run below nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def start_store(tmp_path: Path) -> Iterator[Callable[..., StoreProcess]]:
    """Starts store processes (see `launch`); those left at the end of the test are killed."""
    started: list[StoreProcess] = []

    def start(state_dir: Path | None = None, port: int | None = None, *, wait: float = 60.0) -> StoreProcess:
        started.append(launch(state_dir or tmp_path / "state", port, wait=wait))
        return started[-1]

    yield start
    for each in started:
        each.stop(signal.SIGKILL)


@pytest.fixture(scope="session")
def store_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreProcess]:
    """The session's embedded store."""
    started = launch(tmp_path_factory.mktemp("store"))
    yield started
    assert started.stop() == 0, started.log.read_text(errors="replace")[-2000:]


@pytest.fixture(scope="session")
def server_settings(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings that lead to the session's store: embedded, or the server that SUREFOOT_TEST_CLICKHOUSE_URL names."""
    url = os.environ.get("SUREFOOT_TEST_CLICKHOUSE_URL")
    if url:
        return Settings(state_dir=tmp_path_factory.mktemp("state"), store=StoreSettings(url=url))
    process: StoreProcess = request.getfixturevalue("store_process")
    return process.settings


def _fresh(settings: Settings, state_dir: Path) -> Iterator[Settings]:
    """Settings for a new database, with a state folder of their own; the store stays the session's."""
    name = f"test_{os.getpid()}_{next(_numbers)}"
    there = settings.store.model_copy(update={"database": name, "password": store_password(settings)})
    mine = settings.model_copy(update={"store": there, "state_dir": state_dir})
    root = Store.connect(mine, database="default")
    try:
        migrate(root, mine)
        yield mine
        root.command(f"DROP DATABASE IF EXISTS {name} SYNC")  # else its tables stay in memory for minutes
    finally:
        root.close()


@pytest.fixture
def store_settings(server_settings: Settings, tmp_path: Path) -> Iterator[Settings]:
    """Settings that lead to a fresh, migrated database of this test's own; `state_dir` is empty and this test's own too."""
    yield from _fresh(server_settings, tmp_path / "surefoot")


@pytest.fixture
def store_environment(store_settings: Settings) -> dict[str, str]:
    """The environment for a child process that shall use `store_settings`."""
    return environment(store_settings)


@pytest.fixture
def fresh_database(store_settings: Settings) -> str:
    """The name of this test's database."""
    return store_settings.store.database


@pytest.fixture
def store(store_settings: Settings) -> Iterator[Store]:
    """A Store on this test's own fresh, migrated database."""
    connected = Store.connect(store_settings)
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def module_settings(server_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings that lead to a fresh, migrated database that all tests of a module share."""
    yield from _fresh(server_settings, tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="module")
def module_store(module_settings: Settings) -> Iterator[Store]:
    """A Store on the module's shared database: faster than `store`, for tests that only read or use tables of their own."""
    connected = Store.connect(module_settings)
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def fake_nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library that answers as NVIDIA's, from the scenario in the file that FAKE_NVML names."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("nvml")
    flags = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread", "-Wl,-soname,libnvidia-ml.so.1")
    subprocess.run(["cc", *flags, "-o", str(folder / "libnvidia-ml.so.1"), str(ROOT / "tests/fakes/nvml/nvml.c")], check=True)
    return folder
