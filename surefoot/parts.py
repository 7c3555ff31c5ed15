"""The parts of a stack on this machine: where each listens, and how to see that it works."""

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

import requests

from pipeline.errors import SettingsError
from pipeline.listening import cannot_listen
from pipeline.settings import Settings


@dataclass(frozen=True, slots=True)
class Part:
    """A process of the stack. `health` is a URL that answers 200 once it works ("": working once it runs)."""

    name: str
    health: str
    address: tuple[str, int] | None

    @property
    def healthy(self) -> bool:
        """Whether it works now."""
        if not self.health:
            return True
        try:
            return requests.get(self.health, timeout=1).ok
        except requests.RequestException:
            return False


def parts(settings: Settings) -> tuple[Part, ...]:
    """The parts in starting order; the store only where it is embedded."""
    store, ingest, console, agent = settings.store, settings.ingest, settings.console, settings.agent
    embedded = (Part("store", f"http://{store.host}:{store.port}/ping", (store.host, store.port)),)
    return (
        *(() if settings.store_url else embedded),
        Part("ingest", f"http://{ingest.host}:{ingest.port}/healthz", (ingest.host, ingest.port)),
        Part("jobs", "", None),
        Part("agent", f"http://{agent.host}:{agent.port}/healthz", (agent.host, agent.port)),
        Part("console", f"http://{console.host}:{console.port}/_stcore/health", (console.host, console.port)),
    )


def server(settings: Settings) -> Part | None:
    """The ClickHouse server that the parts use, which is nobody's to start or stop here; None where the store is embedded.

    Its name is its URL without user and password. The ports by default are the driver's, as in `pipeline.store`.
    """
    if not settings.store_url:
        return None
    url = urlsplit(settings.store_url)
    host = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    place = f"{url.scheme}://{host}:{url.port or (8443 if url.scheme == 'https' else 8123)}"
    return Part(place, f"{place}/ping", None)


def check_addresses(settings: Settings) -> None:
    """Raises SettingsError where a part could not listen where it should."""
    for part in parts(settings):
        if part.address is None:
            continue
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(part.address)
            except OSError as e:
                raise SettingsError(cannot_listen(part.name, *part.address, e)) from e
