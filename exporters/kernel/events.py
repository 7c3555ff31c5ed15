"""From a line of the kernel's log to the event that it tells of: which GPU, disk, mount and rank it is about."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

from exporters.collector import Site
from exporters.kernel.lines import recognise
from exporters.kernel.ranks import RankBook
from exporters.labels import clean
from exporters.sources import procfs
from exporters.sources.gpu.pci import normal
from exporters.sources.kernel.log import KernelRecord
from exporters.sources.storage import blocks, disks
from pipeline.catalog import xid_links, xids
from pipeline.catalog.events import (
    FILESYSTEM_ERROR,
    GPU_INIT_FAILED,
    IO_ERROR,
    LINK_CHANGED,
    OOM_VICTIM,
    PCIE_ERROR,
    REMOUNTED_READ_ONLY,
    SXID,
    XID,
    EventKind,
)
from pipeline.catalog.layers import Severity
from pipeline.records import Event

TOGETHER: Final = 60.0  # seconds within which lines about one GPU tell of one thing
_FELL: Final = "79"
_NAMED: Final = re.compile(r"NVRM: The NVIDIA GPU \S+\s*$")  # the first line of several that stand for one
_VICTIM: Final = re.compile(r"oom-kill:constraint=.*task_memcg=(?P<cgroup>[^,]*),task=.*,pid=(?P<pid>\d+)")
_RECOVERY: Final = re.compile(r" to 0x[0-9a-fA-F]+ \((?P<action>[^)]{1,64})\)")
_SEVERE: Final = frozenset({"RESET_GPU", "RESTART_BM", "RESTART_VM", "RESTART_FM", "WORKFLOW_XID_48", "WORKFLOW_NVLINK_ERR", "XID_154"})
_MOST_GPUS: Final = 256


@dataclass(slots=True)
class Teller:
    """Makes events of lines. It remembers only what belongs to several lines of one thing."""

    site: Site
    boot: str
    ranks: RankBook
    _named: str = ""
    _victims: dict[str, str] = field(default_factory=dict)  # the last one's pid and its group
    _xids: dict[str, tuple[str, float]] = field(default_factory=dict)  # the last of each GPU that tells of a cause, and when
    _fell: dict[str, float] = field(default_factory=dict)

    def event(self, record: KernelRecord, at: datetime, clock_source: str) -> Event | None:
        """The event of a line that was written `at`; None where it tells of nothing, or of what another line has told."""
        text = record.text
        if self._named and text.startswith("NVRM: fallen off the bus"):
            text = f"{self._named} {text}"
        if self._named or "NVIDIA GPU" in text:
            self._named = text if _NAMED.search(text) else self._named if text.startswith("NVRM: (PCI ID") else ""
        if "oom-kill:" in text and (victim := _VICTIM.search(text)):
            self._victims = {victim["pid"]: victim["cgroup"]}
        found = recognise(text)
        if found is None:
            return None
        draft: _Draft | None = _Draft(found.kind, found.code, dict(found.attrs))
        if draft and (make := _MAKERS.get(found.kind.name)):
            draft = make(self, draft, text, at.timestamp())
        return None if draft is None else self._filled(draft, record, at, clock_source)

    def _filled(self, draft: "_Draft", record: KernelRecord, at: datetime, clock_source: str) -> Event:
        member = self.ranks.of(draft.attrs.get("pid"))
        if draft.kind is OOM_VICTIM:
            draft.code = "node" if member is None else "rank" if member.itself else "child"
            if member is None and (known := self.ranks.runs()):
                draft.attrs["known_runs"] = known
        what = f"{self.site.node}\x1f{self.boot}\x1f{record.sequence}\x1f{record.text}"
        attrs = {key: clean(value) for key, value in draft.attrs.items() if key in draft.kind.attrs}
        return Event(
            id=blake2b(what.encode(errors="replace"), digest_size=16).hexdigest(),
            at=at,
            kind=draft.kind.name,
            layer=draft.kind.layer.value,
            severity=(draft.severity or draft.kind.severity).value,
            node=self.site.node,
            device=clean(draft.device),
            run=member.rank.run if member else "",
            rank=member.rank.rank if member else None,
            code=clean(draft.code),
            message=clean(record.text),
            attrs={**attrs, "clock_source": clock_source},
        )

    # --- what single kinds need ---------------------------------------------------------------------

    def gpu(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """Names the GPU by its UUID; where that is not known, by its PCI address."""
        draft.attrs["pci"] = normal(draft.attrs.get("pci", "")) or draft.attrs.get("pci", "")
        draft.device = draft.attrs["uuid"] = self.site.gpus().get(draft.attrs["pci"]) or draft.attrs["pci"]
        if draft.attrs.get("pid") == "<unknown>":
            del draft.attrs["pid"]
        if draft.attrs.get("comm") == "<unknown>":
            del draft.attrs["comm"]
        return draft

    def xid(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """An XID with what the catalogue says of it. XID 0 is none."""
        number = int(draft.code) if len(draft.code) <= 6 else 0
        if number == 0:
            return None
        self.gpu(draft, text, at)
        if draft.code == _FELL and self._fell_before(draft.device, at) and "NVRM: Xid" not in text:
            return None
        draft.code = str(number)
        _catalogued(draft, number, text)
        cause = self._xids.get(draft.device)
        if xid_follows(number):
            draft.severity = Severity.WARNING
            if cause and 0 <= at - cause[1] <= TOGETHER:
                draft.severity, draft.attrs["follows"] = Severity.INFO, cause[0]
        else:
            self._remember(draft.device, draft.code, at)
        return draft

    def _fell_before(self, device: str, at: float) -> bool:
        before, self._fell[device] = self._fell.pop(device, None), at
        _bounded(self._fell)
        return before is not None and abs(at - before) <= TOGETHER

    def _remember(self, device: str, code: str, at: float) -> None:
        self._xids.pop(device, None)
        self._xids[device] = (code, at)
        _bounded(self._xids)

    def pci(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """Names a PCI device: a GPU by its UUID, others by their address."""
        address = draft.attrs["pci"] = normal(draft.attrs.get("pci", "")) or draft.attrs.get("pci", "")
        if uuid := self.site.gpus().get(address):
            draft.attrs["uuid"] = uuid
        draft.device = uuid or draft.attrs.get("interface") or address
        return draft

    def sxid(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """An NVSwitch is named by its PCI address."""
        self.pci(draft, text, at)
        draft.attrs["action"] = xids.switch_action(int(draft.code[:9]), draft.attrs.get("fatal") == "Fatal")
        draft.severity = Severity.CRITICAL if draft.attrs.get("fatal") == "Fatal" else Severity.WARNING
        return draft

    def disk(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """Names the disk, also where a partition is told of."""
        draft.device = draft.attrs["disk"] = disks.disk_of(self.site.sys, blocks.whole(draft.attrs["disk"]))
        return draft

    def file_system(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """Names the mount point where the device is mounted."""
        source = draft.attrs["source"]
        draft.attrs["source"] = f"/dev/{source}"
        try:
            mounts = procfs.mounts(self.site.proc)
        except OSError:
            mounts = []
        number = blocks.number(self.site.sys, source)
        points = [m.mount_point for m in mounts if m.source == f"/dev/{source}" or (number and m.device == number)]
        if points:
            draft.attrs["mount_point"] = min(points, key=len)
        draft.device = draft.attrs.get("mount_point", f"/dev/{source}")
        return draft

    def victim(self, draft: "_Draft", text: str, at: float) -> "_Draft | None":
        """The control group of a killed process, where the line before told it."""
        if group := self._victims.get(draft.attrs["pid"]):
            draft.attrs["cgroup"] = group
        return draft


@dataclass(slots=True)
class _Draft:
    kind: EventKind
    code: str
    attrs: dict[str, str]
    device: str = ""
    severity: Severity | None = None


_MAKERS: Final[Mapping[str, Callable[[Teller, _Draft, str, float], _Draft | None]]] = {
    XID.name: Teller.xid,
    SXID.name: Teller.sxid,
    GPU_INIT_FAILED.name: Teller.gpu,
    PCIE_ERROR.name: Teller.pci,
    LINK_CHANGED.name: Teller.pci,
    IO_ERROR.name: Teller.disk,
    FILESYSTEM_ERROR.name: Teller.file_system,
    REMOUNTED_READ_ONLY.name: Teller.file_system,
    OOM_VICTIM.name: Teller.victim,
}


def xid_follows(number: int) -> bool:
    """Whether that XID usually tells of what another one has caused."""
    known = xids.BY_CODE.get(number)
    return known is not None and known.follows


def _catalogued(draft: _Draft, number: int, text: str) -> None:
    known = xids.BY_CODE.get(number)
    if known is not None:
        draft.attrs |= {"mnemonic": known.mnemonic, "summary": known.summary, "action": known.immediate, "investigate": known.investigatory}
    if part := draft.attrs.get("subcode"):
        info, status = int(draft.attrs.pop("info", "0"), 16), int(draft.attrs.get("status", "0"), 16)
        draft.attrs["reason"] = str(info >> 20 & 0x3F)
        draft.attrs["action"] = xid_links.action(part, draft.attrs["fatal"] == "Fatal", info, status)
    if number == 154 and (told := _RECOVERY.search(text)):
        draft.attrs["action"] = told["action"]
    action = draft.attrs.get("action", "")
    if action == xid_links.IGNORE:
        draft.severity = Severity.WARNING
    elif action in _SEVERE:
        draft.severity = Severity.CRITICAL
    draft.attrs = {key: value for key, value in draft.attrs.items() if value}


def _bounded(known: dict[str, Any]) -> None:
    while len(known) > _MOST_GPUS:
        known.pop(next(iter(known)))
