"""What a board's management controller says of its chassis: power, temperature, fans, by DMTF's Redfish over HTTP.

Both models are read: Power and Thermal, and the newer PowerSubsystem, ThermalSubsystem and EnvironmentMetrics. Base units; what is absent,
malformed or beyond belief is None.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import requests
from urllib3.exceptions import HTTPError

from exporters.sources.web import why
from pipeline.clock import monotonic
from pipeline.settings import RedfishSettings

MOST_CHASSIS: Final = 16
MOST_FANS: Final = 64
_ANSWER: Final = 1 << 20  # bytes
_INLET: Final = frozenset({"intake", "inlet", "room", "ambient"})

Get = Callable[[str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Chassis:
    """One chassis: watts drawn and allowed, the inlet's temperature (celsius), the slowest fan (turns a second, share of its full speed),
    fans that are not well, and whether the controller calls the chassis well."""

    name: str
    power: float | None = None
    power_limit: float | None = None
    inlet: float | None = None
    fan_speed: float | None = None
    fan_share: float | None = None
    fans_failed: int | None = None
    healthy: bool | None = None


class Redfish:
    """The controller at `settings.url`. A whole reading takes at most `deadline` seconds."""

    def __init__(self, settings: RedfishSettings, deadline: float, clock: Callable[[], float] = monotonic) -> None:
        self._base, self._deadline, self._clock = settings.url.rstrip("/") + "/", deadline, clock
        self._session = requests.Session()
        self._session.trust_env = False  # no proxy, no .netrc: the password goes to the controller alone
        self._session.auth = (settings.user, settings.password) if settings.user else None
        self._session.verify = settings.ca_file or True
        self._session.headers["Accept"] = "application/json"

    def read(self) -> list[Chassis]:
        """Every chassis. Raises OSError where the controller does not answer, or not in time."""
        end = self._clock() + self._deadline
        return chassis(lambda path: self._get(path, end - self._clock()))

    def close(self) -> None:
        """Ends the connection."""
        self._session.close()

    def _get(self, path: str, left: float) -> Mapping[str, Any]:
        if left <= 0:
            raise TimeoutError("the controller does not answer in time")
        url = urljoin(self._base, path)
        if urlsplit(url)[:2] != urlsplit(self._base)[:2]:
            raise OSError(f"the controller names another machine: {urlsplit(url).hostname}")
        try:
            with self._session.get(url, timeout=left, allow_redirects=False, stream=True) as answer:
                body = answer.raw.read(_ANSWER, decode_content=True)
                if answer.status_code != 200:
                    raise OSError(f"the controller answers {answer.status_code} for {urlsplit(url).path}")
        except (requests.RequestException, HTTPError, ValueError) as e:
            raise OSError(f"the controller at {self._base} does not answer: {why(e)}") from e
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as e:
            raise OSError("the controller answers something that is no JSON") from e
        return found if isinstance(found, dict) else {}


def chassis(get: Get) -> list[Chassis]:
    """Every chassis that the controller tells of; a resource that cannot be had costs only its own values.

    Raises OSError where the list of them cannot be had, or there is no time left.
    """
    members = _list(get("/redfish/v1/Chassis").get("Members"))[:MOST_CHASSIS]
    return [_chassis(get, path) for path in map(_link, members) if path]


def _chassis(get: Get, path: str) -> Chassis:
    top = _try(get, path)
    power, thermal = _try(get, _link(top.get("Power"))), _try(get, _link(top.get("Thermal")))
    control = next(iter(_list(power.get("PowerControl"))), {})
    environment = _try(get, _link(top.get("EnvironmentMetrics")))
    subsystem = _try(get, _link(top.get("ThermalSubsystem")))
    metrics = _try(get, _link(subsystem.get("ThermalMetrics")))
    fans = _list(thermal.get("Fans")) or _members(get, _link(subsystem.get("Fans")))
    summary = _dict(metrics.get("TemperatureSummaryCelsius"))
    turns, shares = zip(*map(_speed, fans), strict=True) if fans else ((), ())
    state = _dict(top.get("Status")).get("Health")
    return Chassis(
        str(top.get("Id") or path.rstrip("/").rpartition("/")[2])[:128],
        power=_first(_number(control.get("PowerConsumedWatts"), 0, 1e6), _reading(environment.get("PowerWatts"), 0, 1e6)),
        power_limit=_first(
            _number(_dict(control.get("PowerLimit")).get("LimitInWatts"), 1, 1e6),
            _number(_dict(environment.get("PowerLimitWatts")).get("SetPoint"), 1, 1e6),
        ),
        inlet=_first(*_inlets(_list(thermal.get("Temperatures"))), _reading(summary.get("Intake"), -50, 150)),
        fan_speed=min((n for n in turns if n is not None), default=None),
        fan_share=min((n for n in shares if n is not None), default=None),
        fans_failed=sum(not _well(fan) for fan in fans) if fans else None,
        healthy=None if state not in ("OK", "Warning", "Critical") else state == "OK",
    )


def _members(get: Get, path: str) -> list[Mapping[str, Any]]:
    links = [_link(one) for one in _list(_try(get, path).get("Members"))[:MOST_FANS]]
    return [found for link in links if (found := _try(get, link))]


def _inlets(sensors: list[Mapping[str, Any]]) -> Iterator[float]:
    """The temperatures of what stands for the air that comes in, by its physical context, or else by its name."""
    for key in ("PhysicalContext", "Name"):
        for sensor in sensors:
            words = str(sensor.get(key, "")).lower()
            value = _number(sensor.get("ReadingCelsius"), -50, 150)
            if value is not None and any(word in words for word in _INLET):
                yield value


def _speed(fan: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Turns a second, and share of full speed; of a fan that is not there neither."""
    if _dict(fan.get("Status")).get("State") == "Absent":
        return None, None
    value = _number(fan.get("Reading"), 0, 1e5)
    percent = value if fan.get("ReadingUnits") == "Percent" else _reading(fan.get("SpeedPercent"), 0, 100)
    rpm = value if fan.get("ReadingUnits", "RPM") == "RPM" else None
    rpm = rpm if rpm is not None else _number(_dict(fan.get("SpeedPercent")).get("SpeedRPM"), 0, 1e5)
    return (None if rpm is None else rpm / 60), (None if percent is None or percent > 100 else percent / 100)


def _well(fan: Mapping[str, Any]) -> bool:
    status = _dict(fan.get("Status"))
    return status.get("State") == "Absent" or status.get("Health") in (None, "OK")


def _try(get: Get, path: str) -> Mapping[str, Any]:
    """The resource; empty where there is none. A controller that is too slow is not asked for the next one."""
    if not path:
        return {}
    try:
        return get(path)
    except TimeoutError:
        raise
    except OSError:
        return {}


def _link(found: object) -> str:
    path = _dict(found).get("@odata.id")
    return path if isinstance(path, str) and path.startswith("/") and not path.startswith("//") else ""


def _dict(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, dict) else {}


def _list(found: object) -> list[Mapping[str, Any]]:
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _reading(found: object, low: float, high: float) -> float | None:
    return _number(_dict(found).get("Reading"), low, high)


def _number(value: object, low: float, high: float) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high else None


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)
