"""Settings: one YAML file plus the environment, read and checked once at start.

`SUREFOOT_CONFIG` or `--config` names the file; `SUREFOOT_INGEST__PORT=4319` overrides `ingest.port`;
`SUREFOOT_X_FILE` reads the value of `SUREFOOT_X` from a file (for secrets). A key that is not known
is an error that names the nearest one. Nothing else in Surefoot reads the environment, but for what a
launcher hands to its ranks (`surefoot.hook.layout`).
"""

import os
import socket
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pipeline.catalog import actions as action_catalog
from pipeline.catalog.layers import ActionMode
from pipeline.errors import SettingsError
from surefoot.hook import layout

PREFIX = "SUREFOOT_"
CONFIG = "SUREFOOT_CONFIG"
NOT_SETTINGS = frozenset({CONFIG, "SUREFOOT_TEST_CLICKHOUSE_URL", *layout.ENVIRONMENT})
RUNBOOKS = "docs/runbooks"  # in Surefoot's repository
HOLD_SECRETS = ("clickhouse_url", "store", "ingest", "receivers")  # groups of settings with passwords, tokens and keys in them


class Part(BaseModel):
    """A group of settings that refuses keys it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class StoreSettings(Part):
    """Where rows are kept. `url` names a ClickHouse server; without it the embedded store runs here."""

    url: str = ""
    database: str = "surefoot"
    user: str = "default"
    password: str = ""
    cluster: str = ""  # ON CLUSTER name; "" on one machine
    host: str = "127.0.0.1"
    port: int = Field(18123, ge=1, le=65535)
    memory_bytes: int = 2 << 30
    query_seconds: float = 30.0


class IngestSettings(Part):
    """The receiver of telemetry. Senders use `url`; the server listens on host and port."""

    host: str = "127.0.0.1"
    port: int = Field(4318, ge=1, le=65535)
    url: str = ""
    token: str = ""
    max_body_bytes: int = 64 << 20
    spool_bytes: int = 2 << 30
    batch_seconds: float = Field(1.0, gt=0, le=60)
    batch_rows: int = Field(50_000, gt=0)

    @property
    def endpoint(self) -> str:
        """The base URL that agents and launchers send to."""
        return self.url.rstrip("/") or f"http://{self.host}:{self.port}"


class AgentSettings(Part):
    """The node's agent. Intervals are seconds."""

    host: str = "127.0.0.1"
    port: int = Field(9412, ge=1, le=65535)
    interval: float = Field(10.0, gt=0)
    ring_interval: float = Field(0.25, gt=0)
    flush_interval: float = Field(0.25, gt=0)
    timeout: float = Field(5.0, gt=0)
    buffer_bytes: int = 64 << 20


class JobSettings(Part):
    """The launcher. Times are seconds."""

    grace: float = Field(10.0, ge=0)
    control_timeout: float = Field(5.0, gt=0)
    verdict_timeout: float = Field(1800.0, gt=0)
    max_restarts_per_hour: int = Field(3, ge=0)


class DetectSettings(Part):
    """How patient the detectors are. Times are seconds."""

    tick: float = Field(0.5, gt=0)
    stall_floor: float = Field(3.0, gt=0)
    stall_factor: float = Field(8.0, gt=1)
    start_limit: float = Field(600.0, gt=0)
    phase_limits: dict[str, float] = Field(
        default_factory=lambda: {
            **{"init": 600.0, "load_checkpoint": 1800.0, "compile": 3600.0, "checkpoint": 1800.0, "eval": 3600.0},
            **{"data": 60.0, "between_steps": 600.0},  # a data loader that starts anew; an eval or save that was given no phase
        }
    )
    heartbeat: float = Field(10.0, gt=0)


class RecoverySettings(Part):
    """What Surefoot may do by itself, and how often."""

    modes: dict[str, ActionMode] = Field(default_factory=dict)
    max_restarts_per_run: int = Field(20, ge=0)
    max_restarts_per_signature: int = Field(3, ge=0)
    window: float = Field(3600.0, gt=0)

    @field_validator("modes", mode="before")
    @classmethod
    def _off(cls, modes: Any) -> Any:
        """YAML reads a bare `off` as false."""
        return {k: ActionMode.OFF if v is False else v for k, v in modes.items()} if isinstance(modes, dict) else modes

    @field_validator("modes")
    @classmethod
    def _known(cls, modes: dict[str, ActionMode]) -> dict[str, ActionMode]:
        if unknown := modes.keys() - action_catalog.BY_NAME.keys():
            raise ValueError(f"unknown action {min(unknown)!r}; known are {', '.join(action_catalog.BY_NAME)}")
        return modes

    def mode(self, kind: action_catalog.ActionKind) -> ActionMode:
        """The mode of `kind` on this cluster."""
        return self.modes.get(kind.name, kind.default_mode)


class ReceiverSettings(Part):
    """Somebody to tell. `key` is PagerDuty's routing key."""

    kind: Literal["log", "webhook", "pagerduty"]
    name: str = ""
    url: str = ""
    key: str = ""
    min_severity: Literal["info", "warning", "error", "critical"] = "warning"

    @model_validator(mode="after")
    def _reachable(self) -> "ReceiverSettings":
        if self.kind == "pagerduty" and not self.key:
            raise ValueError("a pagerduty receiver needs its routing key: set key")
        if self.kind == "webhook" and not self.url:
            raise ValueError("a webhook receiver needs an address: set url")
        return self


class ConsoleSettings(Part):
    """The console. `url` is what pages link to, `runbooks` the address below which each fault's runbook lies."""

    host: str = "127.0.0.1"
    port: int = Field(8501, ge=1, le=65535)
    url: str = ""
    runbooks: str = ""

    @property
    def link(self) -> str:
        """The base URL of deep links."""
        return self.url.rstrip("/") or f"http://{self.host}:{self.port}"

    def runbook(self, fault: str) -> str:
        """Where the runbook of the fault of this name is: below `runbooks`, or its path in Surefoot's own repository."""
        return f"{self.runbooks.rstrip('/') or RUNBOOKS}/{fault}.md"


class Settings(BaseSettings):
    """All settings. Paths are absolute after loading."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)

    cluster: str = "local"
    node: str = Field(default_factory=lambda: socket.gethostname().lower())
    state_dir: Path = Path("~/.local/state/surefoot")
    ring_dir: Path = Path("/dev/shm/surefoot")
    clickhouse_url: str = ""
    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    agent: AgentSettings = AgentSettings()
    job: JobSettings = JobSettings()
    detect: DetectSettings = DetectSettings()
    recovery: RecoverySettings = RecoverySettings()
    receivers: tuple[ReceiverSettings, ...] = (ReceiverSettings(kind="log"),)
    console: ConsoleSettings = ConsoleSettings()

    @field_validator("state_dir", "ring_dir")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        return path.expanduser().absolute()

    @field_validator("node")
    @classmethod
    def _folded(cls, node: str) -> str:
        return node.lower()

    @property
    def store_url(self) -> str:
        """The ClickHouse server's URL, or "" where the embedded store is used."""
        return self.clickhouse_url or self.store.url

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file, which comes in as arguments."""
        return (env_settings, init_settings)


def load(path: Path | None = None) -> Settings:
    """The settings of this process, from `path` (or `SUREFOOT_CONFIG`) and the environment.

    Raises SettingsError, one line naming the key and what to do, for an unreadable file, an unknown
    key or a value that does not fit.
    """
    named = path or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
    given = _read(named) if named else {}
    _read_secret_files()
    _check_environment(os.environ)
    try:
        return Settings(**given)
    except ValidationError as e:
        raise SettingsError(_explain(e)) from None


def pass_on(path: Path) -> None:
    """Name the settings file to the processes that this one starts, and to itself."""
    os.environ[CONFIG] = str(path.absolute())


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` for a process that is not ours: without the variables that may hold a password, a token or a key."""
    ours = {PREFIX + name.upper() for name in HOLD_SECRETS}
    return {name: value for name, value in environ.items() if name.upper().split("__")[0] not in ours}


def forget() -> None:
    """Drop every setting of the environment, for this process and those that it starts."""
    for name in [n for n in os.environ if n.startswith(PREFIX)]:
        del os.environ[name]


def keep_loopback_direct() -> None:
    """Take this machine's own addresses out of the reach of a proxy that the environment names, for us and the processes we start."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [*filter(None, os.environ.get(name, "").split(",")), "127.0.0.1", "localhost"]
        os.environ[name] = ",".join(dict.fromkeys(hosts))


def _read(path: Path) -> dict[str, Any]:
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    except OSError as e:
        raise SettingsError(f"cannot read the settings file {path}: {e.strerror}") from e
    except (yaml.YAMLError, UnicodeDecodeError) as e:
        raise SettingsError(f"{path} is not valid YAML: {' '.join(str(e).split())}") from e
    if not isinstance(given, dict):
        raise SettingsError(f"{path} must hold keys and values, not a {type(given).__name__}")
    return given


def _read_secret_files() -> None:
    """`SUREFOOT_X_FILE` becomes `SUREFOOT_X`, for this process and its children."""
    for name in [n for n in os.environ if n.startswith(PREFIX) and n.endswith("_FILE")]:
        if not _is_setting(name.removesuffix("_FILE")):
            raise _unknown(name)
        try:
            os.environ[name.removesuffix("_FILE")] = Path(os.environ.pop(name)).read_text(encoding="utf-8").strip()
        except OSError as e:
            raise SettingsError(f"cannot read the file that {name} names: {e.strerror}") from e


def _check_environment(environ: Mapping[str, str]) -> None:
    """pydantic-settings overlooks variables that it does not know; a typing error must not pass in silence."""
    for name in environ:
        if name.startswith(PREFIX) and name not in NOT_SETTINGS and not _is_setting(name):
            raise _unknown(name)


def _unknown(name: str) -> SettingsError:
    return SettingsError(f"unknown setting {name} in the environment{_nearest(name, _variables() | NOT_SETTINGS)}")


def _is_setting(name: str) -> bool:
    """Whether a variable belongs to a setting or a group of them; what is wrong inside a group is found with its file's keys."""
    return name.split("__")[0].removeprefix(PREFIX).lower() in Settings.model_fields


def _variables() -> set[str]:
    return {variable(key) for key in all_keys()}


def variable(key: str) -> str:
    """The environment's name of a setting: SUREFOOT_INGEST__PORT for ingest.port."""
    return PREFIX + key.upper().replace(".", "__")


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] != "extra_forbidden":
        return f"setting {key}: {first['msg'].removeprefix('Value error, ')}"
    parent, _, last = key.rpartition(".")
    known = {k.rpartition(".")[2] for k in all_keys() if k.rpartition(".")[0] == parent}
    return f"unknown setting {key}{_nearest(last, known)}"


def _nearest(word: str, known: set[str] | frozenset[str]) -> str:
    found = get_close_matches(word, known, 1, 0.4)
    return f"; did you mean {found[0]}?" if found else f"; known are {', '.join(sorted(known))}"


def all_keys() -> Iterator[str]:
    """Every setting's dotted name, groups first."""
    for name, info in Settings.model_fields.items():
        yield name
        if isinstance(info.annotation, type) and issubclass(info.annotation, Part):
            yield from (f"{name}.{inner}" for inner in info.annotation.model_fields)
