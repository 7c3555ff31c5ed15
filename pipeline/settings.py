"""Settings: one YAML file plus the environment, read and checked once at start.

`SUREFOOT_CONFIG` or `--config` names the file; `SUREFOOT_INGEST__PORT=4319` overrides `ingest.port`;
`SUREFOOT_X_FILE` reads the value of `SUREFOOT_X` from a file (for secrets). A key that is not known
is an error that names the nearest one. Nothing else in Surefoot reads the environment, but for what a
launcher hands to its ranks (`surefoot.hook.layout`).
"""

import os
import socket
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pipeline import setting_file
from pipeline.catalog import actions as action_catalog
from pipeline.catalog.layers import ActionMode, Phase
from pipeline.catalog.runs import unfit_node
from pipeline.errors import SettingsError
from pipeline.setting_environment import CONFIG, PREFIX, group, keys, take
from pipeline.setting_parts import KubernetesSettings as KubernetesSettings
from pipeline.setting_parts import Part as Part
from pipeline.setting_parts import RedfishSettings as RedfishSettings
from pipeline.setting_parts import ScrapeSettings as ScrapeSettings
from pipeline.setting_parts import SlurmSettings as SlurmSettings
from pipeline.setting_values import (
    DAY,
    GIB,
    HOUR,
    MIB,
    WEEK,
    BaseUrl,
    Database,
    File,
    Folder,
    Host,
    Identifier,
    Label,
    Name,
    Port,
    StoreUrl,
    Text,
    Token,
    WebUrl,
    no_truth,
)
from pipeline.setting_words import words
from pipeline.wording import nearest

BETWEEN_STEPS: Final = "between_steps"  # a limit's name beside the phases': what a trainer does outside any
ANYWHERE: Final = frozenset({"0.0.0.0", "::"})  # to listen there is to listen on every address
HOLD_SECRETS = ("clickhouse_url", "store", "ingest", "agent", "receivers")  # groups of settings with passwords, tokens and keys in them


class StoreSettings(Part):
    """Where rows are kept. `url` names a ClickHouse server; without it the embedded store runs here."""

    url: StoreUrl = ""
    database: Database = "surefoot"
    user: Name = "default"
    password: Text = ""
    cluster: Identifier = ""  # ON CLUSTER name; "" on one machine
    host: Host = "127.0.0.1"
    port: Port = 18123
    memory_bytes: int = Field(2 * GIB, ge=256 * MIB, le=1 << 50)
    query_seconds: float = Field(30.0, ge=1, le=HOUR)


class IngestSettings(Part):
    """The receiver of telemetry. Senders use `url`; it listens on host and port. `pagerduty_secret` signs what PagerDuty posts to it."""

    host: Host = "127.0.0.1"
    port: Port = 4318
    url: BaseUrl = ""
    token: Token = ""
    pagerduty_secret: Token = ""
    max_body_bytes: int = Field(64 * MIB, ge=64 << 10, le=GIB)
    spool_bytes: int = Field(2 * GIB, ge=16 << 10, le=1 << 50)
    batch_seconds: float = Field(1.0, ge=0.01, le=60)
    batch_rows: int = Field(50_000, ge=1, le=10_000_000)

    @property
    def endpoint(self) -> str:
        """The base URL that agents and launchers send to."""
        return self.url.rstrip("/") or f"http://{self.host}:{self.port}"


class AgentSettings(Part):
    """The node's agent. Intervals are seconds. `scrape` lists pages of other programs that it reads as well.

    `schedulers`: `slurm` looks at this node and its jobs, on every node; `slurm-cluster` and `kubernetes` look at the whole cluster, so
    set them on one agent of it.

    `interval` is the pace of collectors that have none of their own. File systems are looked at every 4 s at least, and at once when
    something is mounted otherwise, so that a full or hung one is found within ten seconds.

    `probe_paths`: folders that a small file is written to, synced, read back and deleted in, every `probe_interval`, and whose
    quotas are read; choose one on each file system whose hang or slowness would stop a run. `tiers`: what a mount lies on, by mount point,
    where Surefoot cannot tell or tells wrongly: `memory`, `ssd`, `hdd`, `remote` or `object`. `kubelet_url`: of this node, for its volumes (`https://NODE:10250`).
    `ascend_logs`: where processes on Ascend NPUs write their logs (`ASCEND_PROCESS_LOG_PATH`).

    `buffer_bytes` wait in memory for ingest; `disk_buffer_bytes` in the state folder while it is away (0: none), for `disk_buffer_age`
    seconds at most. `textfile` is a folder that the page is written to, for node_exporter's textfile collector; `compat` names
    exporters whose names are shown beside ours.
    """

    host: Host = "127.0.0.1"
    port: Port = 9412
    interval: float = Field(10.0, ge=0.1, le=HOUR)
    ring_interval: float = Field(0.25, ge=0.01, le=1)  # a rank that was not looked at for some seconds is not judged
    flush_interval: float = Field(0.25, ge=0.01, le=1)
    timeout: float = Field(5.0, ge=0.1, le=60)
    buffer_bytes: int = Field(64 * MIB, ge=64 << 10, le=64 * GIB)
    disk_buffer_bytes: int = Field(256 * MIB, ge=0, le=64 * GIB)
    disk_buffer_age: float = Field(DAY, ge=1, le=WEEK)
    textfile: File = ""
    compat: tuple[Literal["dcgm", "node"], ...] = ()
    probe_paths: tuple[Folder, ...] = ()
    probe_interval: float = Field(30.0, ge=1, le=HOUR)
    tiers: dict[str, Literal["memory", "ssd", "hdd", "remote", "object"]] = Field(default_factory=dict)
    kubelet_url: BaseUrl = ""
    kubelet_token_file: File = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    kubelet_ca_file: File = ""
    ascend_logs: Folder = Path("/root/ascend/log")
    scrape: tuple[ScrapeSettings, ...] = Field((), max_length=64)
    schedulers: tuple[Literal["slurm", "slurm-cluster", "kubernetes"], ...] = ()
    slurm: SlurmSettings = SlurmSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    redfish: RedfishSettings = RedfishSettings()

    @field_validator("scrape")
    @classmethod
    def _told_apart(cls, targets: tuple[ScrapeSettings, ...]) -> tuple[ScrapeSettings, ...]:
        names = [target.name for target in targets]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two targets are named {min(twice)!r}: give each a name of its own")
        return targets


class JobSettings(Part):
    """The launcher, on each node. Times are seconds.

    `grace`: from SIGTERM to SIGKILL. `control_timeout`: without an answer of the control plane, after which it goes on alone.
    `verdict_timeout`: that it waits after a failure for what is to be done. `gather_timeout`: that it waits **at the run's start** for its
    other nodes, and then gives up; how long a **restart** waits for a node before it goes on without it is `recovery.gather`.
    `max_restarts_per_hour`: its own restarts, while the control plane is away.
    """

    grace: float = Field(10.0, ge=0, le=HOUR)
    control_timeout: float = Field(5.0, ge=0.1, le=HOUR)
    verdict_timeout: float = Field(1800.0, ge=0.1, le=WEEK)
    gather_timeout: float = Field(600.0, ge=1, le=WEEK)
    max_restarts_per_hour: int = Field(3, ge=0, le=1000)


class DetectSettings(Part):
    """How patient the detectors are. Times are seconds."""

    tick: float = Field(0.5, ge=0.05, le=5)
    stall_floor: float = Field(3.0, ge=0.5, le=DAY)
    stall_factor: float = Field(8.0, gt=1, le=1000)
    start_limit: float = Field(600.0, ge=1, le=WEEK)
    phase_limits: dict[str, Annotated[float, BeforeValidator(no_truth), Field(ge=1, le=WEEK)]] = Field(
        default_factory=lambda: {
            **{"init": 600.0, "load_checkpoint": 1800.0, "compile": 3600.0, "checkpoint": 1800.0, "eval": 3600.0},
            **{"data": 60.0, BETWEEN_STEPS: 600.0},  # a data loader that starts anew; an eval or save that was given no phase
        }
    )
    heartbeat: float = Field(10.0, ge=3, le=DAY)  # ingest gives a sign of life every two seconds
    settle: float = Field(60.0, ge=0, le=HOUR)  # what comes back within this time is the same incident

    @field_validator("phase_limits")
    @classmethod
    def _known(cls, limits: dict[str, float]) -> dict[str, float]:
        if unknown := limits.keys() - {*Phase, BETWEEN_STEPS}:
            raise ValueError(f"unknown phase {min(unknown)!r}; known are {', '.join((*Phase, BETWEEN_STEPS))}")
        return limits


class RecoverySettings(Part):
    """What Surefoot may do by itself, and how often. Times are seconds.

    `modes`: `off`, `dry-run`, `approve` or `auto` by action. Within `window` a run is restarted `max_restarts_per_run` times at most, and
    `max_restarts_per_signature` times after the same failure. `gather`: that **the leader** waits, once as many of a run's launchers are
    there as it takes at least, for the others to come too: at its start before it begins with fewer, at a restart before it leaves out who
    is missing. How long a launcher waits for enough of them to come at all is `job.gather_timeout`.
    """

    modes: dict[str, ActionMode] = Field(default_factory=dict)
    max_restarts_per_run: int = Field(20, ge=0, le=10_000)
    max_restarts_per_signature: int = Field(3, ge=0, le=10_000)
    window: float = Field(3600.0, ge=1, le=52 * WEEK)
    gather: float = Field(30.0, ge=1, le=HOUR)

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
    name: Text = ""
    url: WebUrl = ""
    key: Token = ""
    min_severity: Literal["info", "warning", "error", "critical"] = "warning"

    @model_validator(mode="after")
    def _reachable(self) -> "ReceiverSettings":
        if self.kind == "pagerduty" and not self.key:
            raise ValueError("a pagerduty receiver needs its routing key: set key")
        if self.kind == "webhook" and not self.url:
            raise ValueError("a webhook receiver needs an address: set url")
        return self


class ConsoleSettings(Part):
    """The console. `url` is what pages link to; `runbooks` is where they find the runbooks ("": on a page of the console)."""

    host: Host = "127.0.0.1"
    port: Port = 8501
    url: BaseUrl = ""
    runbooks: Text = ""

    @property
    def link(self) -> str:
        """The base URL of deep links."""
        return self.url.rstrip("/") or f"http://{self.host}:{self.port}"


class Settings(BaseSettings):
    """All settings. Paths are absolute after loading."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)

    cluster: Label = "local"
    node: Label = Field(default_factory=lambda: socket.gethostname().lower(), validate_default=True)
    state_dir: Folder = Path("~/.local/state/surefoot")
    ring_dir: Folder = Path("/dev/shm/surefoot")
    topology: File = ""  # racks and switches of the nodes (pipeline/topology.py)
    clickhouse_url: StoreUrl = ""
    store: StoreSettings = StoreSettings()
    ingest: IngestSettings = IngestSettings()
    agent: AgentSettings = AgentSettings()
    job: JobSettings = JobSettings()
    detect: DetectSettings = DetectSettings()
    recovery: RecoverySettings = RecoverySettings()
    receivers: tuple[ReceiverSettings, ...] = (ReceiverSettings(kind="log"),)
    console: ConsoleSettings = ConsoleSettings()

    @field_validator("node")
    @classmethod
    def _folded(cls, node: str) -> str:
        if why := unfit_node(node):
            raise ValueError(why)
        return node.lower()

    @model_validator(mode="after")
    def _apart(self) -> Self:
        """What listens on this machine listens on ports of its own."""
        addresses = {
            **({} if self.store_url else {"store": (self.store.host, self.store.port)}),
            "ingest": (self.ingest.host, self.ingest.port),
            "agent": (self.agent.host, self.agent.port),
            "console": (self.console.host, self.console.port),
        }
        for (one, (here, port)), (other, (there, same)) in combinations(addresses.items(), 2):
            hosts = {"127.0.0.1" if host == "localhost" else host for host in (here, there)}
            if port == same and (len(hosts) == 1 or hosts & ANYWHERE):
                raise ValueError(f"{one}.port and {other}.port are both {port}: give each part a port of its own")
        return self

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
    named = file_of(path)
    given = setting_file.read(named) if named else {}
    for key in given.keys() - Settings.model_fields.keys():
        raise SettingsError(f"unknown setting {key}{nearest(key, Settings.model_fields)}")
    take(Settings.model_fields)
    try:
        return Settings(**given)
    except ValidationError as e:
        raise SettingsError(_explain(e)) from None


def file_of(path: Path | None = None) -> Path | None:
    """The settings file of this process: `path`, else the one that `SUREFOOT_CONFIG` names; None where there is none."""
    return path or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)


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


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    told = words(first["type"], first["msg"], key)
    if first["type"] != "extra_forbidden":
        return f"setting {key}: {told}" if key else told
    parent, _, last = key.rpartition(".")
    listed: dict[str, type[Part]] = {
        "receivers": ReceiverSettings,
        "agent.scrape": ScrapeSettings,
        "agent.slurm": SlurmSettings,
        "agent.kubernetes": KubernetesSettings,
    }
    inside = next((kind.model_fields for name, kind in listed.items() if parent.startswith(name)), group(Settings.model_fields, parent))
    return f"unknown setting {key}{nearest(last, inside)}"


def all_keys() -> Iterator[str]:
    """Every setting's dotted name, groups first."""
    return keys(Settings.model_fields)
