"""A management controller that answers as DMTF's schemas have it, and as none should."""

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exporters.collector import Reading, Site
from exporters.encode import accept
from exporters.host.redfish import RedfishCollector
from exporters.sources.redfish import Chassis, Redfish, chassis
from pipeline.settings import AgentSettings, RedfishSettings

NOW = datetime(2026, 12, 1, tzinfo=UTC)


def source(url: str, deadline: float = 30.0, **more: Any) -> Redfish:
    return Redfish(RedfishSettings(url=url, **more), deadline)


def test_both_models_are_read_in_base_units(bmc: str) -> None:
    assert source(bmc).read() == [
        Chassis("Board", 5120, 9000, 24.5, fan_speed=100.0, fan_share=None, fans_failed=1, healthy=True),
        Chassis("Tray", 800.5, 1200, 27, fan_speed=70.0, fan_share=0.35, fans_failed=0, healthy=False),
    ]


def test_the_password_goes_to_the_controller_and_nowhere_else(httpserver: HTTPServer) -> None:
    seen: list[str] = []

    def answer(request: Request) -> Response:
        seen.append(request.headers.get("Authorization", ""))
        return Response('{"Members": [{"@odata.id": "//elsewhere.example/x"}, {"@odata.id": "http://elsewhere.example/x"}]}', 200)

    httpserver.expect_request("/redfish/v1/Chassis").respond_with_handler(answer)
    assert source(httpserver.url_for(""), user="u", password="p").read() == []
    assert seen == ["Basic " + base64.b64encode(b"u:p").decode()]


def test_a_redirection_is_not_followed(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/redfish/v1/Chassis").respond_with_data("", 301, {"Location": "http://127.0.0.1:9/"})
    with pytest.raises(OSError, match="answers 301"):
        source(httpserver.url_for("")).read()


def test_a_resource_that_fails_costs_only_its_own_values(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/redfish/v1/Chassis").respond_with_json({"Members": [{"@odata.id": "/c"}]})
    httpserver.expect_request("/c").respond_with_json({"Id": "c", "Power": {"@odata.id": "/p"}, "Thermal": {"@odata.id": "/t"}})
    httpserver.expect_request("/p").respond_with_data("nonsense", 500)
    httpserver.expect_request("/t").respond_with_json({"Temperatures": [{"Name": "Inlet", "ReadingCelsius": 20}]})
    assert source(httpserver.url_for("")).read() == [Chassis("c", inlet=20)]


def test_a_whole_reading_has_one_deadline(bmc: str) -> None:
    clock = iter([0.0, 1.0, 2.0, 11.0])
    slow = Redfish(RedfishSettings(url=bmc), 10.0, clock=lambda: next(clock))
    with pytest.raises(TimeoutError, match="in time"):
        slow.read()


def test_a_controller_that_is_not_there_is_told_as_an_error() -> None:
    with pytest.raises(OSError, match=r"the controller at .* does not answer: "):
        source("http://127.0.0.1:9", 1.0).read()


def test_without_an_address_nothing_is_asked_and_nothing_told() -> None:
    assert list(RedfishCollector(Site("node1")).collect(NOW)) == []


def test_what_is_beyond_belief_is_absent(httpserver: HTTPServer) -> None:
    power = {"PowerControl": [{"PowerConsumedWatts": -1, "PowerLimit": {"LimitInWatts": 0}}]}  # 0: no limit
    thermal = {"Temperatures": [{"Name": "Inlet", "ReadingCelsius": 255}], "Fans": [{"Reading": True}, "x"]}
    httpserver.expect_request("/redfish/v1/Chassis").respond_with_json({"Members": [{"@odata.id": "/c"}]})
    httpserver.expect_request("/c").respond_with_json({"Id": "c", "Power": {"@odata.id": "/p"}, "Thermal": {"@odata.id": "/t"}})
    httpserver.expect_request("/p").respond_with_json(power)
    httpserver.expect_request("/t").respond_with_json(thermal)
    assert source(httpserver.url_for("")).read() == [Chassis("c", fans_failed=0)]


LINKS = st.sampled_from(["/redfish/v1/Chassis", "/a", "/b", "", "x"])
WORDS = (
    "Members @odata.id Id Power Thermal PowerControl PowerLimit LimitInWatts PowerConsumedWatts Temperatures ReadingCelsius Name Fans "
    "Reading ReadingUnits SpeedPercent SpeedRPM Status Health State EnvironmentMetrics ThermalSubsystem ThermalMetrics"
)
KEYS = st.sampled_from(WORDS.split())
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | LINKS
JSON: st.SearchStrategy[Any] = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6))


@given(st.dictionaries(LINKS, st.dictionaries(KEYS, JSON, max_size=4)))
def test_any_json_gives_values_that_are_believed(answers: dict[str, Any]) -> None:
    def get(path: str) -> Any:
        if path not in answers:
            raise OSError("no such resource")
        return answers[path]

    try:
        found = chassis(get)
    except OSError:
        return
    site = replace(Site("node1"), settings=AgentSettings(redfish=RedfishSettings(url="http://127.0.0.1:9")))
    collector = RedfishCollector(site)
    readings: list[Reading] = [collector._reading(one) for one in found]
    accept(readings)
    collector.close()


def test_a_controller_drips_its_answer_no_longer_than_it_may(httpserver: HTTPServer) -> None:
    def endless() -> Callable[[], Any]:
        def answer(_: Request) -> Response:
            return Response(iter([b"{"] * (1 << 21)), 200)

        return answer  # type: ignore[return-value]

    httpserver.expect_request("/redfish/v1/Chassis").respond_with_handler(endless())  # type: ignore[arg-type]
    with pytest.raises(OSError, match="no JSON"):
        source(httpserver.url_for("")).read()


def test_a_password_that_no_header_can_carry_is_told_as_an_error() -> None:
    with pytest.raises(OSError, match=r"the controller at .* does not answer: "):
        source("https://127.0.0.1:9", 1.0, user="admin", password="pass€").read()
