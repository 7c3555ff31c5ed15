"""XIDs as NVIDIA's driver tells its clients of them (NVML's event sets), for where the kernel's log may not be read.

Waiting for one may hang with the driver, and the library can be started anew only as a whole: both are left to a child process. Run as a
program this is that process: it writes a JSON text a line, `{"pci": address, "xid": number}`, until the process that began it is gone.
"""

import json
import os
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from exporters.sources.gpu import nvml_library
from pipeline.clock import monotonic

AGAIN: Final = 30.0  # seconds after which it is begun again: it ends when the driver loses a GPU
_WAIT: Final = 1000  # milliseconds
_MOST: Final = 1 << 16  # bytes that are taken in at once
_COMMAND: Final = (sys.executable, "-P", "-m", "exporters.sources.gpu.nvml_events")


class Told(NamedTuple):
    """An XID of the GPU at a PCI address."""

    pci: str
    xid: int


class XidEvents:
    """The child process, begun at the first question where NVIDIA's library is here, and again some time after it has ended."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._child: subprocess.Popen[bytes] | None = None
        self._begin_at = float("-inf")
        self._buffer = b""

    def take(self) -> list[Told]:
        """What was told since the last call; waits for nothing but the end of a child that has just ended."""
        if self._child is None:
            if self._clock() < self._begin_at:
                return []
            self._begin_at = self._clock() + AGAIN
            if not nvml_library.installed():
                return []
            self._child = subprocess.Popen(_COMMAND, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._child.stdout is not None
        while select.select([self._child.stdout], [], [], 0)[0]:
            data = os.read(self._child.stdout.fileno(), _MOST)
            if not data:
                self.close()
                break
            self._buffer = (self._buffer + data)[-_MOST:]
        *lines, self._buffer = self._buffer.split(b"\n")
        return [one for line in lines if (one := _parsed(line))]

    def close(self) -> None:
        """Ends it; one that is stuck in the driver is left to it."""
        if self._child is None:
            return
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._child.kill()
        try:
            self._child.wait(0.5)
        except subprocess.TimeoutExpired:
            self._child.returncode = 0
        self._child, self._buffer = None, b""


def _parsed(line: bytes) -> Told | None:
    try:
        told = json.loads(line)
        return Told(str(told["pci"]), int(told["xid"]))
    except (ValueError, TypeError, KeyError):
        return None


def main() -> None:
    """Tells of XIDs until the parent is gone; ends where the driver can no longer be asked."""
    import pynvml as nvml

    parent = os.getppid()
    try:
        nvml.nvmlInit()
        events = nvml.nvmlEventSetCreate()
        if not any([_registered(nvml, events, index) for index in range(nvml.nvmlDeviceGetCount())]):
            return
        while os.getppid() == parent:
            try:
                event = nvml.nvmlEventSetWait_v2(events, _WAIT)
            except nvml.NVMLError_Timeout:
                continue
            if event.eventType == nvml.nvmlEventTypeXidCriticalError:
                place = nvml.nvmlDeviceGetPciInfo(event.device).busId
                pci = place.decode("ascii", "replace") if isinstance(place, bytes) else place
                os.write(1, json.dumps({"pci": pci, "xid": event.eventData}).encode() + b"\n")
    except nvml.NVMLError:
        return


def _registered(nvml: Any, events: Any, index: int) -> bool:
    """Whether the driver will tell of that GPU's XIDs."""
    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if not nvml.nvmlDeviceGetSupportedEventTypes(handle) & nvml.nvmlEventTypeXidCriticalError:
            return False
        nvml.nvmlDeviceRegisterEvents(handle, nvml.nvmlEventTypeXidCriticalError, events)
    except nvml.NVMLError:
        return False
    return True


if __name__ == "__main__":
    main()
