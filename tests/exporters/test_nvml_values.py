"""NVML's values, and that reader, names and catalogue are one."""

from ctypes import c_char_p
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.collector import Reading
from exporters.encode import accept
from exporters.sources.gpu import nvml_state
from exporters.sources.gpu.accelerator import STATE_FIELDS, Lost, NoDriver
from exporters.sources.gpu.nvml_values import ask, number
from pipeline.catalog.metrics import GPU, GPU_LINK


def test_every_field_of_a_state_is_a_metric_and_every_metric_but_the_collectors_own_a_field() -> None:
    own = {"up", "probe_hung", "probe_time", "counters_fallen"}
    assert {GPU.column(metric) for metric in GPU.metrics} - own == STATE_FIELDS


@given(st.one_of(st.none(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(), st.binary(), st.text()))
def test_any_value_becomes_a_number_or_nothing_and_what_cannot_be_is_counted(value: Any) -> None:
    for scale in (1, 1e6, 1e-3, 1e-2, 1e-9, 1024):
        found = number(value, scale)
        for metric in (*GPU.metrics, *GPU_LINK.metrics):
            family = GPU if metric in GPU.metrics else GPU_LINK
            identity = {"node": "n", "uuid": "u", "link": "0"}
            (accepted,), rejected = accept([Reading(family, {key: identity[key] for key in family.identity}, {metric.name: found})])
            assert len(accepted.values) + rejected == (found is not None)


@given(st.lists(st.tuples(st.integers(0, (1 << 32) - 1), st.one_of(st.none(), st.integers(0, (1 << 64) - 1)))))
def test_any_list_of_processes_gives_only_processes_that_can_be(listed: list[tuple[int, int | None]]) -> None:
    total = 80 << 30
    with pytest.MonkeyPatch.context() as patch:
        told = [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in listed]
        patch.setattr(pynvml, "nvmlDeviceGetComputeRunningProcesses", lambda handle: told)
        users, mismatch = nvml_state.users(None, total)
    assert all(0 < user.pid <= 1 << 22 for user in users)
    assert len({user.pid for user in users}) == len(users)
    assert users or not listed or mismatch


@pytest.mark.parametrize(("code", "raised"), [(15, Lost), (16, Lost), (1, NoDriver), (9, NoDriver), (18, NoDriver)])
def test_an_error_about_the_gpu_or_its_driver_is_no_absent_value(code: int, raised: type[OSError]) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(code)

    with pytest.raises(raised):
        ask(fail)


@pytest.mark.parametrize("code", [2, 3, 4, 6, 10, 13, 17, 25, 29, 999, 12345])
def test_an_error_about_one_value_is_an_absent_value(code: int) -> None:
    def fail() -> None:
        raise pynvml.NVMLError(code)

    assert ask(fail) is None


def test_text_that_is_not_utf8_is_absent() -> None:
    assert ask(lambda: c_char_p(b"\xff\xfe").value.decode()) is None  # type: ignore[union-attr]
