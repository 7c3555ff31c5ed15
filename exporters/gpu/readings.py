"""A GPU's state as readings of the catalogue."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from pathlib import Path

from exporters.collector import Reading, Site
from exporters.falls import Falls
from exporters.sources import cgroups
from exporters.sources.gpu.accelerator import Device, Link, Partition, Seen, User, Value
from pipeline.catalog.events import GPU_LOST
from pipeline.catalog.metrics import GPU, GPU_LINK, GPU_PARTITION, GPU_PROCESS
from pipeline.records import Event

_BESIDE = ("up", "probe_hung", "probe_time", "counters_fallen")  # what is not the driver's to say
_STATE = {metric.name: GPU.column(metric) for metric in GPU.metrics if GPU.column(metric) not in _BESIDE}
_LINK = {metric.name: GPU_LINK.column(metric) for metric in GPU_LINK.metrics}
_PARTITION = {metric.name: GPU_PARTITION.column(metric) for metric in GPU_PARTITION.metrics}


class Readings:
    """Makes readings of a site's GPUs, and keeps an eye on their counters."""

    def __init__(self, site: Site) -> None:
        self._node, self._proc, self._ranks = site.node, site.proc, site.ranks
        self._falls = Falls()

    def of(self, device: Device, seen: Seen, seconds: float) -> Iterator[Reading]:
        """All readings of a GPU that was read within `seconds`."""
        told: dict[str, Value] = {name: getattr(seen.state, field) for name, field in _STATE.items()}
        links = [self._believed(_link(self._node, device, link)) for link in seen.links]
        own, fallen = self._falls.believed(self._reading(device, told))
        own |= {"gpu.up": 1, "gpu.probe_hung": 0, "gpu.probe.time": seconds}
        own["gpu.counters.fallen"] = fallen + sum(count for _, count in links)
        yield self._reading(device, own)
        yield from (link for link, _ in links)
        yield from (_partition(self._node, device, one) for one in seen.partitions)
        ranks = {rank.pid: rank for rank in self._ranks()}
        for user in seen.users:
            rank = ranks.get(user.pid)
            known = {"run": rank.run, "rank": str(rank.rank)} if rank else {}
            yield _process(self._node, device, user, {"command": _command(self._proc, user.pid), **_pod(self._proc, user.pid), **known})

    def down(self, device: Device) -> Reading:
        """That the driver has lost a GPU."""
        return self._reading(device, {"gpu.up": 0, "gpu.probe_hung": 0})

    def hung(self, device: Device, seconds: float) -> Reading:
        """That a call for a GPU has been under way for `seconds`: nobody knows whether it is up."""
        return self._reading(device, {"gpu.probe_hung": 1, "gpu.probe.time": seconds})

    def unread(self, device: Device, seconds: float) -> Reading:
        """That the driver answered, and said nothing of use."""
        return self._reading(device, {"gpu.probe_hung": 0, "gpu.probe.time": seconds})

    def _reading(self, device: Device, values: Mapping[str, Value]) -> Reading:
        about = {name: getattr(device, name) for name in ("vendor", "model", "pci", "index", "serial", "driver", "vbios")}
        return Reading(GPU, {"node": self._node, "uuid": device.uuid}, values, {name: word for name, word in about.items() if word})

    def _believed(self, reading: Reading) -> tuple[Reading, int]:
        values, fallen = self._falls.believed(reading)
        return Reading(reading.family, reading.identity, values, reading.attributes), fallen


def lost_event(node: str, boot: str, device: Device, number: int, now: datetime) -> Event:
    """That a GPU was lost, for the `number`th time since it has been known."""
    what = f"{node}\x1f{boot}\x1f{device.uuid}\x1f{number}"
    where = f" at {device.pci}" if device.pci else ""
    attrs = {"uuid": device.uuid, "pci": device.pci, "model": device.model, "serial": device.serial}
    return Event(
        id=blake2b(what.encode(errors="replace"), digest_size=16).hexdigest(),
        at=now,
        kind=GPU_LOST.name,
        layer=GPU_LOST.layer.value,
        severity=GPU_LOST.severity.value,
        node=node,
        device=device.uuid,
        message=f"the driver no longer reaches {device.model or 'the GPU'}{where}",
        attrs={name: word for name, word in attrs.items() if word},
    )


def _link(node: str, device: Device, link: Link) -> Reading:
    values = {name: getattr(link, field) for name, field in _LINK.items()}
    return Reading(GPU_LINK, {"node": node, "uuid": device.uuid, "link": str(link.number)}, values)


def _partition(node: str, device: Device, one: Partition) -> Reading:
    values = {name: getattr(one, field) for name, field in _PARTITION.items()}
    about = {"instance": one.instance, "model": device.model}
    return Reading(GPU_PARTITION, {"node": node, "uuid": device.uuid, "partition": one.name}, values, about)


def _process(node: str, device: Device, user: User, about: Mapping[str, str]) -> Reading:
    identity = {"node": node, "uuid": device.uuid, "pid": str(user.pid)}
    return Reading(GPU_PROCESS, identity, {"gpu_process.memory": user.memory}, {name: word for name, word in about.items() if word})


def _pod(proc: Path, pid: int) -> dict[str, str]:
    """Its pod's UID and its container's id, as far as it has them."""
    pod = cgroups.pod_of(proc, pid)
    return {"pod": pod.uid, "container": pod.container} if pod else {}


def _command(proc: Path, pid: int) -> str:
    """The program's name, "" where the process is not to be seen."""
    try:
        return (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
