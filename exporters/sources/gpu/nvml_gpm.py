"""NVML's GPM samples (Hopper and newer): what a GPU did between two samples, ours of the reading before and one of now."""

import time
from typing import Any, Final

import pynvml as nvml

from exporters.sources.gpu.accelerator import Value
from exporters.sources.gpu.nvml_values import ask, number

_MOMENT: Final = 0.1  # seconds: samples that are closer say nothing

# Metric, name; all are percent.
_METRICS: Final = (
    (nvml.NVML_GPM_METRIC_GRAPHICS_UTIL, "activity_graphics"),
    (nvml.NVML_GPM_METRIC_SM_UTIL, "activity_sm"),
    (nvml.NVML_GPM_METRIC_SM_OCCUPANCY, "activity_occupancy"),
    (nvml.NVML_GPM_METRIC_ANY_TENSOR_UTIL, "activity_tensor"),
    (nvml.NVML_GPM_METRIC_DRAM_BW_UTIL, "activity_dram"),
    (nvml.NVML_GPM_METRIC_FP64_UTIL, "activity_fp64"),
    (nvml.NVML_GPM_METRIC_FP32_UTIL, "activity_fp32"),
    (nvml.NVML_GPM_METRIC_FP16_UTIL, "activity_fp16"),
)


class Activity:
    """One GPU's samples. Not for several threads."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle
        support = ask(nvml.nvmlGpmQueryDeviceSupport, handle)
        self._supported = support is not None and bool(support.isSupportedDevice)
        self._before: Any = None
        self._spare: Any = None

    def since_last(self) -> dict[str, Value]:
        """The activity since the last call, at the first one within a moment; nothing where the GPU takes no samples.

        Raises Lost and NoDriver.
        """
        if not self._supported:
            return {}
        if self._before is None:
            self._before = self._sample()
            time.sleep(_MOMENT)
        fresh = self._sample()
        before, self._before = self._before, fresh or self._before
        if before is None or fresh is None:
            return {}
        self._spare = before
        return _between(before, fresh)

    def _sample(self) -> Any:
        """A sample of now; None where there is none."""
        sample, self._spare = self._spare or ask(nvml.nvmlGpmSampleAlloc), None
        if sample is not None and ask(nvml.nvmlGpmSampleGet, self._handle, sample) is None:
            sample, self._spare = None, sample
        return sample

    def close(self) -> None:
        """Gives the samples back to the library."""
        for sample in (self._before, self._spare):
            if sample is not None:
                ask(nvml.nvmlGpmSampleFree, sample)
        self._before = self._spare = None


def _between(before: Any, after: Any) -> dict[str, Value]:
    wanted = nvml.c_nvmlGpmMetricsGet_t()
    wanted.version, wanted.numMetrics = nvml.NVML_GPM_METRICS_GET_VERSION, len(_METRICS)
    wanted.sample1, wanted.sample2 = before, after
    for place, (metric, _) in enumerate(_METRICS):
        wanted.metrics[place].metricId = metric
    if ask(nvml.nvmlGpmMetricsGet, wanted) is None:
        return {}
    found = [(name, wanted.metrics[place]) for place, (_, name) in enumerate(_METRICS)]
    return {name: number(one.value, 0.01) if one.nvmlReturn == nvml.NVML_SUCCESS else None for name, one in found}
