"""`surefoot agent` as a process: until a signal, or for one look."""

import logging
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final

from exporters import textfile
from exporters.agent import Agent
from exporters.collector import Site
from exporters.compat.registry import ForeignText, chosen
from exporters.once import as_json, as_page, look
from exporters.pages import Page, PageServer, metrics_page
from exporters.sending.buffer import DiskBuffer
from exporters.sending.dry import DryRun
from exporters.sending.leftovers import folder_of
from exporters.sending.sender import Sender
from exporters.sources.storage.unasked import NoProbes, no_usage
from exporters.textfile import TextFile
from pipeline.clock import monotonic, utcnow
from pipeline.errors import SettingsError
from pipeline.ownership import AlreadyOwned, own
from pipeline.secrets import ingest_token
from pipeline.settings import Settings

BUFFER: Final = "agent.buffer"  # the folder in the state folder
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Roots:
    """Where the kernel is looked at: this machine's, another's or a saved tree."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    kmsg: Path = Path("/dev/kmsg")


HERE: Final = Roots()


def site_of(settings: Settings, roots: Roots = HERE) -> Site:
    """Where the agent looks. Mounts of a /proc and disks of a /sys that are not this machine's are listed and not asked."""
    site = Site(settings.node, probe_timeout=min(2.0, settings.agent.timeout / 2))
    site = replace(site, proc=roots.proc, sys=roots.sys, kmsg=roots.kmsg, cgroups=roots.sys / "fs/cgroup")
    if roots.proc != HERE.proc:
        site = replace(site, probes=NoProbes, writes=NoProbes, quotas=NoProbes, usage=no_usage)
    if roots.sys != HERE.sys:
        site = replace(site, smarts=NoProbes, moved_crashes=roots.sys.parent / "var/lib/systemd/pstore")
    return site


def show(settings: Settings, roots: Roots, *, json: bool) -> None:
    """One pass: on standard output, or in `agent.textfile` where that is set."""
    foreign = chosen(settings.agent.compat)
    outcomes, now = look(settings, site_of(settings, roots)), utcnow()
    if settings.agent.textfile and not json:
        folder = Path(settings.agent.textfile)
        if not textfile.write(folder, as_page(outcomes, settings.node, now, foreign)):
            raise SettingsError(f"cannot write {folder / textfile.NAME}: is agent.textfile a folder of ours?")
        return
    text = as_json(outcomes, settings.node, now) + "\n" if json else as_page(outcomes, settings.node, now, foreign)
    sys.stdout.write(text)


def rehearse(settings: Settings, roots: Roots) -> None:
    """The loop, until a signal or until nobody reads, with a line for each thing that would be sent. It sends, shows and keeps nothing."""
    stop = _stopped()
    printed = DryRun(sys.stdout, stop.set)
    agent = Agent(settings, site_of(settings, roots), printed, foreign=chosen(settings.agent.compat))
    loop(agent, settings.agent.ring_interval, stop)
    agent.close()
    if printed.failure is not None:
        raise printed.failure


def serve(settings: Settings, roots: Roots = HERE) -> None:
    """Runs the agent until SIGTERM or SIGINT.

    Raises SettingsError where the page's address, the state folder or the ingest token cannot be had; then nothing was touched.
    """
    foreign: Sequence[ForeignText] = chosen(settings.agent.compat)
    token, stop = _token(settings), _stopped()
    pages: dict[str, Page] = {"/healthz": lambda: (503, "the agent is starting\n")}
    server = PageServer(settings.agent.host, settings.agent.port, pages)
    with closing(server), _alone(settings.state_dir):
        sender = Sender(
            settings.ingest.endpoint,
            token,
            settings.agent.timeout,
            node=settings.node,
            flush_interval=settings.agent.flush_interval,
            buffer_bytes=settings.agent.buffer_bytes,
            leftovers=folder_of(settings.ring_dir),
            buffer=_disk_buffer(settings),
        )
        written = TextFile(Path(settings.agent.textfile)) if settings.agent.textfile else None
        agent = Agent(settings, site_of(settings, roots), sender, foreign=foreign, textfile=written)
        pages |= {"/metrics": metrics_page(agent.board), "/healthz": agent.health}
        loop(agent, settings.agent.ring_interval, stop)
        agent.close()


def _alone(state_dir: Path) -> IO[str]:
    """Keeps other agents from the state folder until it is closed: two would take each other's buffer and cursors for their own."""
    try:
        return own(state_dir / "agent.lock")
    except AlreadyOwned as e:
        raise SettingsError(f"another agent (process {e.owner}) works in {state_dir}: stop that one, or set another state_dir") from e
    except OSError as e:
        raise SettingsError(f"cannot use the state folder {state_dir}: {e.strerror}; set state_dir in the settings") from e


def loop(agent: Agent, interval: float, stop: threading.Event) -> None:
    """Turns the agent every `interval` seconds until `stop`."""
    last = ""
    while not stop.is_set():
        began = monotonic()
        try:
            agent.turn(utcnow(), began)
        except Exception as e:  # noqa: BLE001 - the process's one loop: a defect in one turn must not end the node's telemetry
            if str(e) != last:
                _log.exception("a turn of the agent's loop failed")
            last = str(e)
        stop.wait(max(0.0, began + interval - monotonic()))


def _token(settings: Settings) -> str:
    try:
        return ingest_token(settings)
    except OSError as e:
        raise SettingsError(f"no ingest token: {e.strerror} ({e.filename}; also SUREFOOT_INGEST__TOKEN)") from e


def _disk_buffer(settings: Settings) -> DiskBuffer | None:
    most = settings.agent.disk_buffer_bytes
    return DiskBuffer(settings.state_dir / BUFFER, most, settings.agent.disk_buffer_age) if most else None


def _stopped() -> threading.Event:
    """Set by SIGTERM and SIGINT."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop
