"""What XIDs and SXIDs show. NVIDIA's catalogue says which numbers are whose; the GPU is the place, so that its readings are about the same.

Such an event is a thing of a moment. It is over after a quiet minute, unless readings of the GPU (or a new event) say that it is not.
"""

from typing import Final

from pipeline.catalog.events import SXID, XID
from pipeline.catalog.faults import (
    GPU_DRIVER_HANG,
    GPU_ECC_UNCORRECTABLE,
    GPU_FELL_OFF_BUS,
    GPU_HBM_DEGRADING,
    GPU_ILLEGAL_ACCESS,
    GPU_NVLINK_FAULT,
    GPU_ROW_REMAP_PENDING,
    Fault,
)
from pipeline.catalog.rule import Happened, Hold, Rule, Scope

QUIET: Final = Hold(2, 55)
_GPU: Final = "uuid"
_HARMLESS: Final = {"action": "IGNORE"}  # of a link: what the catalogue says of that subcode


def _xid(fault: Fault, *codes: int, scope: Scope = Scope.ANYWHERE, never: dict[str, str] | None = None) -> Rule:
    return Rule(
        fault=fault,
        when=Happened(XID, codes=frozenset(map(str, codes))),
        says="XID {code} on GPU {place} at {pci}{message}",
        cleared="no such XID for a minute",
        clear=QUIET,
        entity=_GPU,
        scope=scope,
        never=never or {},
    )


XIDS: tuple[Rule, ...] = (
    _xid(GPU_FELL_OFF_BUS, 79),
    _xid(GPU_ECC_UNCORRECTABLE, 48, 64, 94, 95, 140, 171, 172),
    _xid(GPU_ROW_REMAP_PENDING, 63),
    _xid(GPU_HBM_DEGRADING, 92, 160, 161),  # 160, 161: a memory channel is retired, or could not be
    _xid(GPU_NVLINK_FAULT, 74, 136, 155),
    _xid(GPU_NVLINK_FAULT, *range(144, 151), never=_HARMLESS),
    Rule(
        fault=GPU_NVLINK_FAULT,
        when=Happened(SXID),
        says="SXID {code} of the NVSwitch at {place}{message}",
        cleared="no such SXID for a minute",
        clear=QUIET,
        entity="device",
        never={"fatal": "|Non-fatal"},
    ),
    _xid(GPU_DRIVER_HANG, 62, 119, 120, 143, 158),
    _xid(GPU_ILLEGAL_ACCESS, 13, 31, 43, scope=Scope.RUN),
)
