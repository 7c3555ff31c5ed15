"""`surefoot doctor`: what Surefoot needs on this machine, a line each, with what to do where it is not there. It changes nothing.

What is looked at is plain data, and what is said of it is pure; only `checkup` and the `_look…` functions touch the machine.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Final

import requests

from exporters.job.capture import find_py_spy
from exporters.once import look
from exporters.passes import Outcome
from exporters.serve import site_of
from exporters.sources.storage.mounts import Probe, Prober, standings
from exporters.sources.storage.probes import Standing
from exporters.sources.web import why
from pipeline.clock import utcnow
from pipeline.errors import SettingsError
from pipeline.secrets import ingest_token
from pipeline.settings import Settings, file_of
from pipeline.sizes import size
from pipeline.topology import read as read_topology
from pipeline.wording import listed
from surefoot.asking import table

GIB: Final = 1 << 30
STATE_ROOM: Final = GIB  # bytes that must be free for the spool, the store and what waits for ingest
RING_ROOM: Final = 64 << 20  # the same for the ranks' rings and what a launcher leaves
SKEW: Final = timedelta(seconds=3)  # clocks this far apart confuse what came first; what ingest says of its own is whole seconds
TIMEOUT: Final = 3.0  # seconds
_SHOWN: Final = 4  # devices that are named


class State(StrEnum):
    """What a check found."""

    OK = "ok"
    NOT = "not"
    ABSENT = "absent"  # there is nothing of the kind on this machine
    NOTE = "note"  # nothing is wrong, but a person should know


@dataclass(frozen=True, slots=True)
class Check:
    """One line: what was looked at, how it is, and what that means or what to do."""

    name: str
    state: State
    said: str


@dataclass(frozen=True, slots=True)
class Answered:
    """What ingest answered: its status (None: nothing came, `why` says what did), when it said so by its clock, and by ours."""

    status: int | None
    why: str = ""
    its_time: datetime | None = None
    our_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """A folder, the nearest one above it that is there, and the bytes that are free in it; None where that cannot be told."""

    folder: Path
    there: Path
    free: int | None
    writable: bool


def checkup(settings: Settings) -> list[Check]:
    """Everything, in the order in which it is mended."""
    token, unusable = _look_for_token(settings)
    health = _look_at_ingest(f"{settings.ingest.endpoint}/healthz")
    asked = _look_at_ingest(f"{settings.ingest.endpoint}/v1/logs", token) if token and health.status else None
    begun = bool(settings.ingest.url) or token is not None or health.status is not None
    own = "127.0.0.1" if settings.agent.host in ("0.0.0.0", "::", "") else settings.agent.host
    agent = f"http://[{own}]:{settings.agent.port}" if ":" in own else f"http://{own}:{settings.agent.port}"
    return [
        of_settings(file_of(), settings),
        *_of_topology(settings.topology),
        of_ingest(settings.ingest.endpoint, health, begun),
        of_token(token, asked, settings, begun, unusable),
        of_clock(health),
        of_agent(agent, _look_at_ingest(f"{agent}/healthz")),
        of_room("state folder", "state_dir", _look_at_room(settings.state_dir), STATE_ROOM),
        of_room("ring folder", "ring_dir", _look_at_room(settings.ring_dir), RING_ROOM),
        *of_probe_paths(_look_at_probe_paths(settings)),
        *(of_collector(outcome) for outcome in look(settings, site_of(settings))),
        of_stacks(find_py_spy()),
        of_receivers(settings),
    ]


def well(checks: Sequence[Check]) -> bool:
    """Whether nothing is missing that should be there."""
    return all(check.state is not State.NOT for check in checks)


def as_text(checks: Sequence[Check]) -> str:
    """The table, and the sum."""
    missing = sum(check.state is State.NOT for check in checks)
    end = "all is well" if not missing else f"{missing} of {len(checks)} need{'s' if missing == 1 else ''} something"
    return table(("CHECK", "STATE", "WHAT"), [(c.name, c.state, c.said) for c in checks]) + f"\n{end}"


def as_json(checks: Sequence[Check]) -> str:
    """The same as one JSON object on one line."""
    return json.dumps({"well": well(checks), "checks": [asdict(check) for check in checks]}, ensure_ascii=False)


# --- what is said ------------------------------------------------------------------------------


def of_settings(file: Path | None, settings: Settings) -> Check:
    """They have been read: bad ones end every command with a line of their own."""
    where = str(file) if file else "no file, so the environment and defaults"
    return Check("settings", State.OK, f"{where}; cluster {settings.cluster}, node {settings.node}")


def of_ingest(endpoint: str, health: Answered, begun: bool = True) -> Check:
    """Whether it answers, and works. One that is neither set nor was ever started here is not missed (`begun` False)."""
    find = "set ingest.url to where it is"
    if health.status is None and not begun:
        return Check("ingest", State.NOTE, f"Surefoot was not started here yet: start it (surefoot up), or {find}")
    if health.status is None:
        return Check("ingest", State.NOT, f"{endpoint} does not answer ({health.why}): start it (surefoot up), or {find}")
    if health.status != 200:
        return Check("ingest", State.NOT, f"{endpoint}/healthz answers {health.status}: that is no ingest; {find}")
    if health.why != "ok":
        return Check("ingest", State.NOT, f"{endpoint} answers, and says: {health.why}: see its log, and that of the store")
    return Check("ingest", State.OK, endpoint)


def of_token(token: str | None, asked: Answered | None, settings: Settings, begun: bool = True, unusable: str = "") -> Check:
    """Whether ingest takes ours. It is told nothing: what it is sent has a form that it refuses after it has looked at the token.
    `unusable` says why one that is there cannot be used."""
    if unusable:
        return Check("token", State.NOT, unusable)
    copy = f"set ingest.token to ingest's, or copy the file ingest.token of its state folder to {settings.state_dir}"
    if token is None and not begun:
        return Check("token", State.NOTE, "there is none yet: surefoot up makes one here, a node of a cluster gets ingest's")
    if token is None:
        return Check("token", State.NOT, f"there is none here: {copy}")
    if asked is None or asked.status is None:
        return Check("token", State.NOTE, "there is one; whether ingest takes it is not known, as it does not answer")
    if asked.status in (401, 403):
        return Check("token", State.NOT, f"ingest refuses ours: {copy}")
    if asked.status != 415:
        return Check("token", State.NOTE, f"ingest answers {asked.status}, which says nothing about the token")
    return Check("token", State.OK, "ingest takes ours")


def of_clock(health: Answered) -> Check:
    """Ours against ingest's."""
    if health.its_time is None or health.our_time is None:
        return Check("clock", State.NOTE, "not compared: ingest did not tell its time")
    ahead = health.our_time - health.its_time
    apart = f"{abs(ahead).total_seconds():.0f} s {'ahead of' if ahead > timedelta() else 'behind'} ingest's"
    if abs(ahead) <= SKEW:
        return Check("clock", State.OK, f"within {SKEW.total_seconds():.0f} s of ingest's")
    return Check("clock", State.NOT, f"ours is {apart}: let both keep time by NTP (chronyc tracking, timedatectl)")


def of_agent(page: str, health: Answered) -> Check:
    """Whether this node has one: a machine that is there to look only needs none."""
    if health.status is None:
        said = f"none answers at {page}, so a loss of this node would not be noticed: start one where runs are (surefoot agent)"
        return Check("agent", State.NOTE, said)
    return Check("agent", State.OK, page)


def of_room(name: str, setting: str, room: Room, least: int) -> Check:
    """Whether there is room, and whether we may write."""
    if not room.writable:
        return Check(name, State.NOT, f"{room.there} cannot be written by us: give it to us, or set {setting}")
    if room.free is None:
        return Check(name, State.NOT, f"{room.there} does not say what is free: look at its file system, or set {setting}")
    if room.free < least:
        return Check(name, State.NOT, f"{size(room.free)} free at {room.there}: make room for {size(least)}, or set {setting}")
    return Check(name, State.OK, f"{room.folder}: {size(room.free)} free")


def of_probe_paths(folders: Mapping[str, Probe[Standing]]) -> Iterator[Check]:
    """Whether they are what the agent can write a small file to; nothing where none is named."""
    wrong = [f"{folder} {_wrong(probe)}" for folder, probe in folders.items() if _wrong(probe)]
    if wrong:
        yield Check("probe paths", State.NOT, f"{'; '.join(wrong)}; they stand in agent.probe_paths")
    elif folders:
        yield Check("probe paths", State.OK, listed(list(folders), _SHOWN))


def _wrong(probe: Probe[Standing]) -> str:
    if probe.errno == errno.ENOENT:
        return "is not there: make it, or leave it out"
    if probe.ok is None:
        return "may not be looked at by us: give it to the agent's user"
    if probe.found is None:
        why = os.strerror(probe.errno) if probe.errno else "does not answer"
        return f"{why}: look at its file system"
    if not probe.found.folder:
        return "is no folder: name the one that it is in"
    return "" if probe.found.writable else "cannot be written by us: give it to the agent's user, or leave it out"


def of_collector(outcome: Outcome) -> Check:
    """What an exporter sees here."""
    name = f"sees {outcome.name}"
    if outcome.error:
        return Check(name, State.NOT, f"nothing: {outcome.error}")
    if silent := [r.labels[1][1] for r in outcome.readings if any((m.name, value) == ("scrape.ok", 0) for m, value in r.values)]:
        return Check(name, State.NOT, f"no page of {listed(silent, _SHOWN)}: see the agent's log, and agent.scrape in the settings")
    seen = [reading.labels[1][1] for reading in outcome.readings if len(reading.family.identity) > 1]  # the first is the node
    if outcome.absent:
        return Check(name, State.ABSENT, outcome.absent)
    values = sum(len(reading.values) for reading in outcome.readings)
    if not values:
        said = f"{len(outcome.events)} events" if outcome.events else "nothing here now"
        return Check(name, State.NOTE, f"{said} in {outcome.source}" if outcome.source else said)
    return Check(name, State.OK, f"{values} values" + (f" of {listed(seen, _SHOWN)}" if seen else ""))


def of_stacks(py_spy: str | None) -> Check:
    """Whether the stacks of a rank that hangs can be told."""
    if py_spy:
        return Check("stacks", State.OK, py_spy)
    return Check("stacks", State.NOTE, "no py-spy, so no stacks of a rank that hangs: pip install '.[stacks]' in Surefoot's clone")


def of_receivers(settings: Settings) -> Check:
    """Whether anybody is told."""
    told = [one.name or one.kind for one in settings.receivers if one.kind != "log"]
    if not told:
        return Check("receivers", State.NOTE, "pages go to the log of jobs only: set receivers where somebody is to be woken")
    return Check("receivers", State.OK, ", ".join(told))


def _of_topology(path: str) -> Iterator[Check]:
    if path:
        try:
            found = read_topology(path)
        except SettingsError as e:
            yield Check("topology", State.NOT, str(e))
        else:
            yield Check("topology", State.OK, f"{path}: {len(found.places)} places, {len(found.above)} nodes")


# --- what is looked at -------------------------------------------------------------------------


def _look_for_token(settings: Settings) -> tuple[str | None, str]:
    """None where there is none that can be used, and why not where there is one."""
    try:
        return ingest_token(settings), ""
    except FileNotFoundError:
        return None, ""
    except OSError as e:
        return None, f"{e.filename} cannot be used: {e.strerror}"


def _look_at_ingest(url: str, token: str = "") -> Answered:
    """With a token: something that ingest refuses for its form, once it has taken the token."""
    with requests.Session() as session:
        session.trust_env = False  # no proxy: the token goes to ingest alone
        try:
            if token:
                headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/plain"}
                return Answered(session.post(url, headers=headers, timeout=TIMEOUT, allow_redirects=False).status_code)
            answer = session.get(url, timeout=TIMEOUT, allow_redirects=False)
            return Answered(answer.status_code, _status(answer), _date(answer), utcnow())
        except (requests.RequestException, OSError) as e:
            return Answered(None, why(e))


def _status(answer: requests.Response) -> str:
    try:
        return str(answer.json()["status"])
    except (ValueError, KeyError, TypeError):
        return "something else"


def _date(answer: requests.Response) -> datetime | None:
    """In the middle of the second that it names."""
    try:
        return parsedate_to_datetime(answer.headers["Date"]).astimezone(UTC) + timedelta(seconds=0.5)
    except (KeyError, ValueError, TypeError):
        return None


def _look_at_probe_paths(settings: Settings) -> Mapping[str, Probe[Standing]]:
    """By a process that may hang in our place."""
    folders = [str(folder) for folder in settings.agent.probe_paths]
    prober = Prober(standings(), TIMEOUT)
    try:
        return prober.probe(folders) if folders else {}
    finally:
        prober.close()


def _look_at_room(folder: Path) -> Room:
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
    except OSError as e:
        return Room(folder, there, None, e.errno != errno.EACCES)
    return Room(folder, there, free, os.access(there, os.W_OK | os.X_OK))
