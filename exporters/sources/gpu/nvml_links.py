"""The NVLinks of one GPU, and its MIG instances, from NVML."""

from typing import Any, Final

import pynvml as nvml

from exporters.sources.gpu.accelerator import Link, Partition, Value
from exporters.sources.gpu.nvml_state import memory
from exporters.sources.gpu.nvml_values import ask, fields, number, scaled, text

_MEGA, _KIB = 1e6, 1024

# Field of one link (its scope is the link's number), name, scale.
_FIELDS: Final[tuple[tuple[int, str, float], ...]] = (
    (nvml.NVML_FI_DEV_NVLINK_GET_SPEED, "speed", _MEGA),
    (nvml.NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY, "replays", 1),
    (nvml.NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY, "recoveries", 1),
    (nvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS, "recoveries_failed", 1),
    (nvml.NVML_FI_DEV_NVLINK_ERROR_DL_CRC, "crc_errors", 1),
    (nvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS, "symbol_errors", 1),
    (nvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS, "effective_errors", 1),
    (nvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS, "receive_errors", 1),
    (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, "sent", _KIB),
    (nvml.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, "received", _KIB),
)
_OLDER: Final = {  # what GPUs before Hopper count, by another call
    "replays": nvml.NVML_NVLINK_ERROR_DL_REPLAY,
    "recoveries": nvml.NVML_NVLINK_ERROR_DL_RECOVERY,
    "crc_errors": nvml.NVML_NVLINK_ERROR_DL_CRC_FLIT,
    "ecc_errors": nvml.NVML_NVLINK_ERROR_DL_ECC_DATA,
}


def links(handle: Any) -> list[Link]:
    """The links that the GPU says it has; none where it says nothing about it. Raises Lost and NoDriver."""
    (count,) = fields(handle, [(nvml.NVML_FI_DEV_NVLINK_LINK_COUNT, 0)])
    there = min(int(count or 0), nvml.NVML_NVLINK_MAX_LINKS)
    return [_link(handle, link) for link in range(there)]


def partitions(handle: Any) -> list[Partition]:
    """The MIG instances. Raises Lost and NoDriver."""
    most = ask(nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    handles = (ask(nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index) for index in range(min(most, 64)))
    return [partition for one in handles if one is not None and (partition := _partition(one))]


def _link(handle: Any, link: int) -> Link:
    state: Value = number(ask(nvml.nvmlDeviceGetNvLinkState, handle, link))
    found = scaled([(name, scale) for _, name, scale in _FIELDS], fields(handle, [(key, link) for key, *_ in _FIELDS]))
    for name, counter in _OLDER.items():
        if found.get(name) is None:
            found[name] = number(ask(nvml.nvmlDeviceGetNvLinkErrorCounter, handle, link, counter))
    return Link(link, up=state, **found)


def _partition(handle: Any) -> Partition | None:
    name = text(ask(nvml.nvmlDeviceGetUUID, handle))
    if not name:
        return None
    instance = [ask(call, handle) for call in (nvml.nvmlDeviceGetGpuInstanceId, nvml.nvmlDeviceGetComputeInstanceId)]
    told = memory(handle)
    return Partition(
        name,
        "/".join("?" if part is None else str(part) for part in instance),
        memory_total=told.get("memory_total"),
        memory_reserved=told.get("memory_reserved"),
        memory_used=told.get("memory_used"),
    )
