"""Eight GPUs with eighteen NVLinks each, read and rendered once, against the limit of 50 ms beyond the driver's own time.

The driver is the tests' library that answers as NVIDIA's, and answers at once: all the time is ours, its binding's and the threads'.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from ctypes import CDLL
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.harness import Goal, Result, compare

GPUS, LINKS = 8, 18
LIMIT: Final = 0.050  # seconds
ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = ROOT / "tests/fakes/nvml/nvml.c"
MODEL: Final = ROOT / "tests/fixtures/nvml_two_gpus.txt"


def run() -> Iterator[Result]:
    """One line; skipped where there is no C compiler."""
    if shutil.which("cc") is None:
        yield Result.skip("gpu", "no C compiler to build the library that answers as NVIDIA's")
        return
    with TemporaryDirectory(prefix="surefoot-bench-") as folder:
        library = Path(folder) / "libnvidia-ml.so.1"
        flags = ("-std=gnu11", "-O2", "-shared", "-fPIC", "-pthread", f"-Wl,-soname,{library.name}")
        subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE)], check=True)
        CDLL(str(library))
        (Path(folder) / "scenario").write_text(_scenario())
        os.environ["FAKE_NVML"] = str(Path(folder) / "scenario")
        yield _measured()


def _measured() -> Result:
    from exporters.collector import Reading, Site
    from exporters.encode import PageText, accept
    from exporters.gpu.collector import GpuCollector

    collector = GpuCollector(Site("bench", probe_timeout=10.0))
    now, page = datetime.now(UTC), PageText()

    def ours() -> float:
        began = time.perf_counter()
        accepted, _ = accept(one for one in collector.collect(now) if isinstance(one, Reading))
        text = page.of(accepted)
        took = time.perf_counter() - began
        assert text.count("surefoot_gpu_up{") == GPUS and text.count("surefoot_gpu_link_up{") == GPUS * LINKS
        return took

    what = f"read and render {GPUS} GPUs with {LINKS} links each : {LIMIT * 1e3:.0f} ms beyond the driver"
    return compare("gpu", what, ours, lambda: LIMIT, Goal(1, "<="), lambda seconds: f"{seconds * 1e3:.1f}ms", repeats=21)


def _scenario() -> str:
    """The first GPU of the tests' scenario, eight times."""
    lines = [line.partition(" ")[::2] for line in MODEL.read_text().splitlines() if not line.startswith(("#", "order", "1.", "100."))]
    common = [f"{key} {value}" for key, value in lines if not key.startswith("0.")]
    told = [(key.partition(".")[2], value) for key, value in lines if key.startswith("0.")]
    apart = {"nvmlDeviceGetUUID": "GPU-{0}", "nvmlDeviceGetPciInfo_v3": "00000000:1{0}:00.0", "field.91": str(LINKS)}
    own = [f"{gpu}.{key} {value}" for gpu in range(GPUS) for key, value in told if key not in apart]
    own += [f"{gpu}.{key} {value.format(gpu)}" for gpu in range(GPUS) for key, value in apart.items()]
    own += [f"*.nvmlDeviceGetNvLinkState.{link} 1" for link in range(LINKS)]
    return "\n".join([f"order {' '.join(map(str, range(GPUS)))}", *common, *own]) + "\n"
