"""Values of NVML: one at a time, absent where the driver does not have it, and its words for "not known" are absent too."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pynvml as nvml

from exporters.sources.gpu.accelerator import Lost, NoDriver, Value

GONE: Final = frozenset({nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED, nvml.NVML_ERROR_GPU_NOT_FOUND})
NO_DRIVER: Final = frozenset(
    {
        nvml.NVML_ERROR_UNINITIALIZED,
        nvml.NVML_ERROR_DRIVER_NOT_LOADED,
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH,
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND,
    }
)
_BLANKS: Final = frozenset({0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF})
_PARTS: Final[Mapping[int, str]] = {
    nvml.NVML_VALUE_TYPE_DOUBLE: "dVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
    nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    nvml.NVML_VALUE_TYPE_SIGNED_INT: "siVal",
    nvml.NVML_VALUE_TYPE_UNSIGNED_SHORT: "usVal",
}


def check(error: Exception) -> None:
    """Raises Lost or NoDriver for an error that is not about one value alone."""
    code = getattr(error, "value", None)
    if code in GONE:
        raise Lost(str(error)) from error
    if code in NO_DRIVER:
        raise NoDriver(f"NVML: {error}") from error


def ask(call: Callable[..., Any], *arguments: Any) -> Any:
    """What `call` gives; None where the driver cannot say. Raises Lost and NoDriver."""
    try:
        return call(*arguments)
    except nvml.NVMLError as e:
        check(e)
    except UnicodeDecodeError:
        pass  # a text that is none
    return None


def number(value: Any, scale: float = 1) -> Value:
    """`value` in the base unit; None for what is no number, or one of the driver's words for "not known"."""
    if not isinstance(value, int | float) or value in _BLANKS:
        return None
    return value if scale == 1 else value * scale if scale > 1 else value / round(1 / scale)


def text(value: Any) -> str:
    """`value` as text, "" where there is none."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def fields(handle: Any, wanted: Sequence[tuple[int, int]]) -> list[Value]:
    """The fields, each given by its id and its scope, in one call."""
    found = ask(nvml.nvmlDeviceGetFieldValues, handle, wanted)
    return [None] * len(wanted) if found is None else [_field(one) for one in found]


def scaled(names: Iterable[tuple[str, float]], values: Iterable[Value]) -> dict[str, Value]:
    """Values under their names, in base units."""
    return {name: number(value, scale) for (name, scale), value in zip(names, values, strict=True)}


def _field(one: Any) -> Value:
    if one.nvmlReturn != nvml.NVML_SUCCESS or one.valueType not in _PARTS:
        return None
    return number(getattr(one.value, _PARTS[one.valueType]))
