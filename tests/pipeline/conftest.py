"""Ways to the store that go around Store: plain HTTP, and the stock driver."""

import http.client
from base64 import b64encode
from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import clickhouse_connect
import pytest
from clickhouse_connect.driver import Client

from pipeline.settings import Settings
from pipeline.store import address


class Raw:
    """Plain HTTP to the store, without the driver."""

    def __init__(self, settings: Settings, password: str | None = None) -> None:
        self.settings = settings
        where = address(settings)
        word = where["password"] if password is None else password
        self.headers = {"Authorization": "Basic " + b64encode(f"{where['username']}:{word}".encode()).decode()}
        kind = http.client.HTTPSConnection if where.get("interface") == "https" else http.client.HTTPConnection
        self.connection = kind(where["host"], where["port"], timeout=60)

    def post(
        self, body: bytes, headers: dict[str, str] | None = None, method: str = "POST", **parameters: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Status, headers (lower-case) and body of an answer."""
        where = "/?" + urlencode({"database": self.settings.store.database, **parameters})
        self.connection.request(method, where, body, self.headers | (headers or {}))
        answer = self.connection.getresponse()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()


@pytest.fixture
def raw_for() -> Iterator[Callable[..., Raw]]:
    """Makes a Raw for settings (and a password); closed after the test."""
    made: list[Raw] = []

    def make(settings: Settings, password: str | None = None) -> Raw:
        made.append(Raw(settings, password))
        return made[-1]

    yield make
    for each in made:
        each.connection.close()


@pytest.fixture
def raw(raw_for: Callable[..., Raw], store_settings: Settings) -> Raw:
    """Raw on this test's own database."""
    return raw_for(store_settings)


@pytest.fixture
def shared_raw(raw_for: Callable[..., Raw], module_settings: Settings) -> Raw:
    """Raw on the module's database, for tests that leave nothing in it."""
    return raw_for(module_settings)


@pytest.fixture
def client(store_settings: Settings) -> Iterator[Client]:
    """The stock driver with its defaults but for the session id."""
    where = address(store_settings) | {"compress": True, "database": store_settings.store.database}
    made = clickhouse_connect.get_client(**where, autogenerate_session_id=False)
    yield made
    made.close()
