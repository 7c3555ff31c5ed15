"""Which processes are ranks. Real environments: each process here is a real one, under trees of our own making."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest

from exporters.job.identify import Kin, Place, is_launcher, place, whole
from exporters.job.procfs import Stat, parse_stat, read_environ, read_stat

Start = Callable[..., Stat]


@pytest.fixture
def process() -> Iterator[Start]:
    """Starts a sleeping process with an environment; its parent may be said to be another."""
    running: list[subprocess.Popen[bytes]] = []

    def start(parent: Stat | None = None, **environment: str) -> Stat:
        running.append(subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **environment}))
        while not read_environ(running[-1].pid, ["PATH"]):  # the kernel shows none in the middle of exec
            time.sleep(0.001)
        stat = read_stat(running[-1].pid)
        assert stat
        return Stat(stat.pid, stat.state, parent.pid if parent else os.getpid(), stat.start, 0)

    yield start
    for p in running:
        p.kill()
        p.wait()


def test_torchruns_workers_are_ranks_and_their_children_are_not(process: Start) -> None:
    torchrun = process()
    workers = [process(torchrun, RANK=str(r), LOCAL_RANK=str(r), WORLD_SIZE="16", LOCAL_WORLD_SIZE="2") for r in (0, 1)]
    loader = process(workers[1], RANK="1", LOCAL_RANK="1")
    inner = process(loader, RANK="5")
    found = Kin({}).update([torchrun, *workers, loader, inner])
    assert [(p.pid, p.rank, p.local_rank, p.world_size) for p in found] == [(workers[0].pid, 0, 0, 16), (workers[1].pid, 1, 1, 16)]


def test_a_rank_that_the_launcher_inherited_makes_it_no_rank(process: Start) -> None:
    torchrun = process(RANK="3", WORLD_SIZE="4")  # a pod's RANK is the node's
    worker = process(torchrun, RANK="24", LOCAL_RANK="0", WORLD_SIZE="32")
    assert [p.pid for p in Kin({"RANK": "3", "WORLD_SIZE": "4"}).update([torchrun, worker])] == [worker.pid]


def test_a_rank_is_new_once_and_an_inner_restart_makes_new_ones(process: Start) -> None:
    torchrun = process()
    first = process(torchrun, RANK="0", LOCAL_RANK="0", TORCHELASTIC_RESTART_COUNT="0")
    kin = Kin({})
    assert [p.restarts for p in kin.update([torchrun, first])] == [0]
    assert kin.update([torchrun, first]) == []
    second = process(torchrun, RANK="0", LOCAL_RANK="0", TORCHELASTIC_RESTART_COUNT="1")
    assert [(p.pid, p.restarts) for p in kin.update([torchrun, second])] == [(second.pid, 1)]


def test_a_dead_ranks_orphan_does_not_become_that_rank(process: Start) -> None:
    torchrun = process()
    rank = process(torchrun, RANK="0", LOCAL_RANK="0")
    kin = Kin({})
    kin.update([torchrun, rank])
    orphan = process(None, RANK="0", LOCAL_RANK="0")
    assert kin.update([orphan]) == []


def test_an_environment_that_declares_no_number_is_no_rank() -> None:
    stat = Stat(1, "S", 0, 5, 0)
    assert place(stat, {}) is None
    assert place(stat, {"RANK": "x"}) is None
    assert place(stat, {"RANK": "-1"}) is None
    assert place(stat, {"RANK": "19", "LOCAL_RANK": "3"}) == Place(1, 5, 19, 3)


def test_a_nodes_offset_and_whether_all_its_ranks_are_there() -> None:
    ranks = [Place(1, 1, 19, 3, 32, 2), Place(2, 1, 20, 4, 32, 2)]
    assert ranks[0].offset == 16
    assert not whole(ranks[:1])
    assert whole(ranks)
    assert not whole([])


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        (["/usr/bin/python3", "/venv/bin/torchrun", "train.py"], True),
        (["python", "-m", "torch.distributed.run", "train.py"], True),
        (["mpirun", "-n", "8", "python", "train.py"], True),
        (["python", "train.py", "--launcher", "none"], False),
    ],
)
def test_launchers_are_known_by_their_command_line(command: list[str], wanted: bool) -> None:
    assert is_launcher(command) is wanted


def test_a_stat_line_is_read_whatever_the_process_calls_itself() -> None:
    tail = b"S 17 1 1 0 -1 0 0 0 0 0 1 2 0 0 20 0 1 0 777" + b" 0" * 29 + b" 9"
    assert parse_stat(b"42 (a) b (c) " + tail) == Stat(42, "S", 17, 777, 9)
    for bad in (b"", b"42 (x", b"42 (x) S 1"):
        with pytest.raises(ValueError, match=r"not a stat line|invalid literal"):
            parse_stat(bad)
