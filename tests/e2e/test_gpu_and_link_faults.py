"""A GPU that falls off its bus, one whose memory fails, a cable that is pulled: one incident each, paged and over again.

The driver is a library that answers as NVIDIA's, the kernel's log is the real one, the network's files are a copy that the test changes.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from pipeline.clock import utcnow
from pipeline.records import IncidentTransition

pytestmark = pytest.mark.slow
PORTS = Path(__file__).parents[1] / "fixtures/sys/class/infiniband"
KMSG = Path("/dev/kmsg")


def uuid(number: int) -> str:
    """Of the GPU with that number."""
    return f"GPU-00000000-0000-0000-0000-{number:012d}"


class Machine:
    """node-b: four GPUs and the fixture's RDMA ports, as its agent sees them."""

    def __init__(self, folder: Path) -> None:
        self.scenario, self.sys = folder / "scenario", folder / "sys"
        shutil.copytree(PORTS, self.sys / "class/infiniband", symlinks=True)
        self.gpus(0, 1, 2, 3)

    def gpus(self, *there: int) -> None:
        """The driver lists these, by their numbers."""
        lines = ["*.nvmlDeviceGetName NVIDIA H100 80GB HBM3", "*.nvmlDeviceGetUtilizationRates 40 20", f"order {' '.join(map(str, there))}"]
        for number in range(4):
            lines += [f"{number}.nvmlDeviceGetUUID {uuid(number)}", f"{number}.nvmlDeviceGetPciInfo_v3 00000000:{0x10 + number:02X}:00.0"]
        fresh = self.scenario.with_suffix(".fresh")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(self.scenario)

    def link(self, state: str, physical: str) -> None:
        """The first port of mlx5_0 is in this state."""
        port = self.sys / "class/infiniband/mlx5_0/ports/1"
        (port / "state").write_text(state + "\n")
        (port / "phys_state").write_text(physical + "\n")

    def logs(self, line: str) -> None:
        """The kernel says so."""
        KMSG.write_text(f"<3>{line}\n")


@pytest.fixture
def machine(tmp_path: Path, fake_nvml: Path, start_agent: Any, seen: Any) -> Machine:
    """It is well, and has been seen to be."""
    if not os.access(KMSG, os.W_OK):
        pytest.skip("may not write to the kernel's log here")
    made = Machine(tmp_path)
    start_agent("node-b", "--path.sysfs", str(made.sys), LD_LIBRARY_PATH=str(fake_nvml), FAKE_NVML=str(made.scenario))
    seen.until(lambda: seen.count("gpu WHERE node = 'node-b' AND up = 1") >= 4 and seen.count("rdma_port WHERE node = 'node-b'"))
    return made


def assert_told(seen: Any, incident: IncidentTransition, *words: str) -> None:
    """Its page names the node, and `words` in the summary or in what was found."""
    payload = seen.told(incident)[0].body["payload"]
    told = payload["summary"] + payload["custom_details"]["found"]
    assert all(word in told for word in ("node-b", *words)), payload


def test_a_gpu_that_falls_off_its_bus_is_one_incident_and_over_once_it_is_back(machine: Machine, seen: Any) -> None:
    began = utcnow()
    machine.logs("NVRM: Xid (PCI:0000:11:00): 79, pid=4711, name=python, GPU has fallen off the bus.")
    machine.gpus(0, 2, 3)
    incident = seen.paged("gpu_fell_off_bus", "node-b", began)
    lost_one = f"(SELECT device_id FROM devices WHERE family = 'gpu' AND node = 'node-b' AND name = '{uuid(1)}')"
    seen.until(lambda: seen.count(f"gpu WHERE device_id IN {lost_one} AND up = 0"), "no reading of what was lost")
    machine.gpus(0, 1, 2, 3)
    last = seen.over(incident)
    assert (last.layer, last.node, last.device, last.severity) == ("compute", "node-b", uuid(1), "critical")
    assert_told(seen, last, uuid(1))
    assert [i.title for i in seen.incidents("node-b")] == [incident.title], "one fault is one incident"


def test_an_xid_94_and_a_cable_that_is_pulled_are_two_incidents_that_are_over_by_themselves(machine: Machine, seen: Any) -> None:
    began = utcnow()
    machine.logs("NVRM: Xid (PCI:0000:12:00): 94, pid=4711, name=python, Contained: SM (0x1). RST: No, D-RST: No")
    memory = seen.paged("gpu_ecc_uncorrectable", "node-b", began)
    began = utcnow()
    machine.link("1: DOWN", "3: Disabled")
    link = seen.paged("link_down", "node-b", began)
    machine.link("4: ACTIVE", "5: LinkUp")
    memory, link = seen.over(memory), seen.over(link)
    assert (memory.layer, memory.node, memory.device) == ("compute", "node-b", uuid(2))
    assert_told(seen, memory, "XID 94", uuid(2))
    assert (link.layer, link.node, link.device) == ("communication", "node-b", "mlx5_0:1")
    assert_told(seen, link, "mlx5_0:1")
    assert sorted(i.title for i in seen.incidents("node-b")) == sorted((memory.title, link.title))
