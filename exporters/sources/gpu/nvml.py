"""NVIDIA's driver through NVML: who is there, and how each is. Its calls may hang; nothing here waits for anything else."""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pynvml as nvml

from exporters.sources.gpu import nvidia_proc, nvml_gpm, nvml_links, nvml_state, pci
from exporters.sources.gpu.accelerator import STATE_FIELDS, Device, Found, Lost, NoDriver, Roll, Seen, State
from exporters.sources.gpu.nvml_values import NO_DRIVER, ask, check, text
from pipeline.clock import monotonic

RENEW: Final = 60.0  # seconds between two attempts to find a lost GPU anew: the library goes on calling it lost until it is started again


class Nvml:
    """The driver, as `accelerator.Driver`. `roll` runs in one thread, `read` in one thread a GPU."""

    def __init__(self, proc: Path, clock: Callable[[], float] = monotonic) -> None:
        self._proc, self._clock = proc, clock
        self._begun: float | None = None  # when the library was started, monotonic
        self._driver = ""
        self._known: dict[str, Device] = {}
        self._activity: dict[str, nvml_gpm.Activity] = {}
        self._asking = ""
        self._there: dict[int, Found] = {}

    @property
    def asking(self) -> str:
        """The index of the GPU that `roll` asks for now, "" for none."""
        return self._asking

    def roll(self, *, renew: bool, hanging: Collection[str]) -> Roll:
        """Every GPU. Raises OSError where the driver cannot be asked at all."""
        if self._begun is not None and renew and self._clock() - self._begun >= RENEW:
            self._end()
        try:
            if self._begun is None:
                nvml.nvmlInit()
                self._begun = self._clock()
                self._driver = text(ask(nvml.nvmlSystemGetDriverVersion))
            count = nvml.nvmlDeviceGetCount()
            found = [one for index in range(count) if (one := self._there.get(index) if str(index) in hanging else self._find(index))]
        except nvml.NVMLError as e:
            self._begun = None
            check(e)
            raise NoDriver(f"NVML: {e}") from e
        except NoDriver:
            self._begun = None
            raise
        finally:
            self._asking = ""
        self._there = {int(one.device.index): one for one in found}
        return Roll(found, nvidia_proc.listed(self._proc))

    def read(self, found: Found) -> Seen:
        """How a GPU is. Raises Lost, and OSError where it cannot be said or the handle has become another GPU's."""
        handle, uuid = found.handle, found.device.uuid
        try:
            who = nvml.nvmlDeviceGetUUID(handle)
        except nvml.NVMLError as e:
            check(e)
            raise OSError(f"NVML does not say which GPU {found.device.index} is: {e}") from e
        if text(who) != uuid:
            raise OSError(f"GPU {found.device.index} is another one now")
        values = nvml_state.values(handle)
        if uuid not in self._activity:
            self._activity[uuid] = nvml_gpm.Activity(handle)
        values |= self._activity[uuid].since_last()
        users, mismatch = nvml_state.users(handle, values.get("memory_total"))
        values |= {"processes": len(users), "binding_mismatch": int(mismatch)}
        parts = nvml_links.partitions(handle) if values.get("mig_enabled") else []
        state = State(**{name: value for name, value in values.items() if name in STATE_FIELDS})
        return Seen(state, nvml_links.links(handle), parts, users)

    def _find(self, index: int) -> Found | None:
        """The GPU at `index`; None where the driver cannot say which one that is."""
        self._asking = str(index)
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = text(nvml.nvmlDeviceGetUUID(handle))
            if uuid and uuid not in self._known:
                self._known[uuid] = self._describe(handle, uuid)
        except (nvml.NVMLError, UnicodeDecodeError, Lost) as e:
            if getattr(e, "value", None) in NO_DRIVER:
                raise
            return None
        if not uuid:
            return None
        return Found(replace(self._known[uuid], index=str(index)), handle)

    def _describe(self, handle: Any, uuid: str) -> Device:
        place = ask(nvml.nvmlDeviceGetPciInfo, handle)
        return Device(
            uuid=uuid,
            pci=pci.normal(text(place.busId)) if place is not None else "",
            vendor="nvidia",
            model=text(ask(nvml.nvmlDeviceGetName, handle)),
            serial=text(ask(nvml.nvmlDeviceGetSerial, handle)),
            driver=self._driver,
            vbios=text(ask(nvml.nvmlDeviceGetVbiosVersion, handle)),
        )

    def _end(self) -> None:
        """Shuts the library down, with what it holds for us."""
        for activity in self._activity.values():
            activity.close()
        self._activity.clear()
        self._known.clear()
        self._begun = None
        ask(nvml.nvmlShutdown)
