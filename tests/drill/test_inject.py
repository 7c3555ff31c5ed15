"""Finding the rank to hurt: a ring that is being made is looked at again, a training that ends early is told with its last words."""

import subprocess
import time
from pathlib import Path

import pytest

from pipeline.settings import Settings
from surefoot.drill.inject import Subject
from surefoot.drill.kinds.kind import Ground, Kind, Scene
from surefoot.drill.kinds.registry import KINDS
from surefoot.drill.plan import NotCarriedOut, Plan
from surefoot.drill.stack import Stack
from surefoot.hook.layout import HEADER_SIZE

WORDS = "torch is not installed"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.name != "oom"], ids=lambda kind: kind.name)
@pytest.mark.parametrize("size", [0, 100, HEADER_SIZE])
def test_a_ring_that_is_being_made_is_no_rank_yet(tmp_path: Path, size: int, kind: Kind) -> None:
    (tmp_path / "r-1.1.ring").write_bytes(bytes(size))
    (tmp_path / "train.log").write_text(f"starting\n{WORDS}\n")
    process = subprocess.Popen(["sleep", "0.3"])
    stack = Stack(process, Settings(ring_dir=tmp_path), tmp_path / "c.yaml", tmp_path)
    with pytest.raises(NotCarriedOut, match=f"the training ended before the fault: {WORDS}"):
        kind.inject(Scene(Plan(kind.name), stack, Subject(process, "r", tmp_path), Ground(tmp_path), time.sleep))
