"""The parts of NVLink 5 that XIDs 144 to 150 name (their subcodes), and what NVIDIA wants done by error status.

Numbers and actions as in the decoding table of NVIDIA's public XID catalogue (docs.nvidia.com/deploy/xid-errors, 2025-10-29).
A line names the part, how grave it is, the link, and words: the first says in its bits 20 to 25 why, the second is the error status.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

IGNORE: Final = "IGNORE"
RESET: Final = "RESET_GPU"
FOLLOW: Final = "XID_154_EVAL"  # what an XID 154 beside it says; without one the program is started again


@dataclass(frozen=True, slots=True)
class LinkPart:
    """A part: its name in the line, the XID that names it, its action, and those of single statuses or reasons that differ."""

    name: str
    xid: int
    action: str = IGNORE
    statuses: Mapping[int, str] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)


def _resets(*statuses: int) -> dict[int, str]:
    return dict.fromkeys(statuses, RESET)


_LINK_DOWN: Final = {0x26: IGNORE, 0x28: IGNORE}  # by software, by the host

PARTS: Final[tuple[LinkPart, ...]] = (
    LinkPart("SAW_MVB", 144, statuses=_resets(0x2, 0x10)),
    LinkPart("RLW_CTRL", 145),
    LinkPart("RLW_REMAP", 145, statuses=_resets(0x40, 0x80) | dict.fromkeys((0x1, 0x2, 0x4, 0x8, 0x10, 0x20), FOLLOW)),
    LinkPart("RLW_RSPCOL", 145, statuses=_resets(0x2)),
    LinkPart("RLW_RXPIPE", 145),
    LinkPart("RLW_SRC_TRACK", 145, statuses=_resets(0x1, 0x10, 0x20) | dict.fromkeys((0x4, 0x8), FOLLOW)),
    LinkPart("RLW_TAGSTATE", 145, statuses=_resets(0x2, 0x20000, 0x100000)),
    LinkPart("TLW_CTRL", 146, statuses=_resets(0x4)),
    LinkPart("TLW_RX", 146, statuses=_resets(0x4)),
    LinkPart("TLW_RX_PIPE0", 146, statuses=_resets(0x4)),
    LinkPart("TLW_RX_PIPE1", 146, statuses=_resets(0x4)),
    LinkPart("TLW_TX", 146, statuses=_resets(0x4)),
    LinkPart("TLW_TX_PIPE0", 146, statuses=_resets(0x4)),
    LinkPart("TLW_TX_PIPE1", 146, statuses=_resets(0x4)),
    LinkPart("TREX", 147),
    LinkPart("NVLPW_CTRL", 148),
    LinkPart("NVLPW", 148),
    LinkPart("NETIR", 149, RESET),
    LinkPart("NETIR_INT", 149, RESET),
    LinkPart("NETIR_BER_EVENT", 149),
    LinkPart("NETIR_LINK_EVT", 149, RESET, reasons=_LINK_DOWN),
    LinkPart("NETIR_LINK_DOWN", 149, RESET, reasons=_LINK_DOWN),
    LinkPart("NETIR_MFDE_EVENT", 149, RESET, statuses={0x3: IGNORE}),
    LinkPart("MSE", 150, RESET),
    LinkPart("MSE_WATCHDOG", 150, RESET),
)
BY_NAME: Final[dict[str, LinkPart]] = {part.name: part for part in PARTS}


def action(part: str, fatal: bool, info: int, status: int) -> str:
    """What is to be done about a line that names `part`, with the words `info` and `status`. An unknown part is reset where it is fatal."""
    known = BY_NAME.get(part)
    if known is None:
        return RESET if fatal else IGNORE
    return known.reasons.get(info >> 20 & 0x3F) or known.statuses.get(status, known.action)
