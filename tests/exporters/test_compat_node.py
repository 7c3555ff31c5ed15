"""node_exporter's names for RDMA ports. The golden page was compared with Debian's prometheus-node-exporter 1.5.0 on the fixture's
mlx5_0 and mlx5_1: all 50 of its series were equal in name, labels, type and value. (On the whole fixture it gives none of them.)"""

from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from exporters.collector import Reading, Site
from exporters.compat.node import NAMES, node_text
from exporters.encode import accept
from exporters.network.rdma import RdmaCollector
from pipeline.catalog.metrics import HOST, RDMA_PORT

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
GOLDEN = Path(__file__).parents[1] / "golden/compat_node.prom"


def page(*readings: Reading) -> str:
    return node_text(accept(readings)[0])


def port(name: str, attributes: dict[str, str] | None = None, **values: float) -> Reading:
    return Reading(RDMA_PORT, {"node": "n", "port": name}, {f"rdma_port.{k}": v for k, v in values.items()}, attributes or {})


def test_the_page_of_the_fixture_machine_is_the_golden_one(site: Site) -> None:
    assert page(*RdmaCollector(site).collect(AT)) == GOLDEN.read_text()


def test_a_node_without_rdma_has_no_page() -> None:
    assert page() == page(Reading(HOST, {"node": "n"}, {"host.load1": 1})) == ""


def test_a_port_that_is_gone_is_not_on_the_page() -> None:
    assert page(port("mlx5_0:1", {"fw": "1.2"}, present=0)) == ""


def test_a_port_is_told_by_device_and_number_and_a_device_once() -> None:
    board = {"fw": "1.2", "board": 'MT"1', "hca_type": "MT4129"}
    text = page(port("mlx5_0:1", board, received=4000, state=4), port("mlx5_0:2", board, state=1))
    assert text.splitlines() == [
        "# HELP node_infiniband_info Firmware, board and model of an RDMA device, always 1",
        "# TYPE node_infiniband_info gauge",
        'node_infiniband_info{board_id="MT\\"1",device="mlx5_0",firmware_version="1.2",hca_type="MT4129"} 1',
        "# HELP node_infiniband_port_data_received_bytes_total Bytes received",
        "# TYPE node_infiniband_port_data_received_bytes_total counter",
        'node_infiniband_port_data_received_bytes_total{device="mlx5_0",port="1"} 4000',
        "# HELP node_infiniband_state_id Logical state: 1 down, 2 initialising, 3 armed, 4 active, 5 active but deferred",
        "# TYPE node_infiniband_state_id gauge",
        'node_infiniband_state_id{device="mlx5_0",port="1"} 4',
        'node_infiniband_state_id{device="mlx5_0",port="2"} 1',
    ]


def test_every_name_is_of_a_metric_that_there_is_and_stands_once() -> None:
    ours = {metric.name.removeprefix("rdma_port.") for metric in RDMA_PORT.metrics}
    assert set(NAMES) <= ours
    assert len(set(NAMES.values())) == len(NAMES)
    # What they have no name for.
    assert ours - set(NAMES) == {"present", "rate.best", "drops", "retransmits", "retries_exceeded", "impaired_connections"}


@given(st.text(max_size=20), st.text(max_size=20))
def test_whatever_a_device_and_its_board_are_called_the_page_can_be_read(name: str, board: str) -> None:
    text = page(port(f"{name}:1", {"board": board}, state=4))
    samples = {s.name: s for family in text_string_to_metric_families(text) for s in family.samples}
    assert samples["node_infiniband_state_id"].labels["port"] == "1"
    assert samples["node_infiniband_info"].value == 1
