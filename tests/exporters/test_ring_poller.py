"""Finding and following rings: real files, real processes, an injected clock."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from exporters.training import KEEP_DEAD, LIVE_EVERY, OVERRUN_EVERY, REFUSE_AFTER, Named, RingPoller
from pipeline.records import Event, Live, Step
from surefoot.hook import layout
from surefoot.hook.layout import CAPACITY
from surefoot.hook.ring import Identity, RingWriter

NS = 1_796_040_000_000_000_000
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
WHO = Identity("run1", "run1-1", "", 0, 0, 2, NS)
TICKS = float(os.sysconf("SC_CLK_TCK"))


class Follower:
    """A poller whose clock the test moves."""

    def __init__(self, folder: Path) -> None:
        self.poller = RingPoller(folder, "node1", Path("/proc"), TICKS)
        self.clock = 1000.0

    def poll(self, after: float = 0.25) -> list[Named]:
        self.clock += after
        return self.poller.poll(AT + timedelta(seconds=self.clock - 1000), self.clock)

    def events(self, after: float = 0.25) -> list[Event]:
        return [r for _, r in self.poll(after) if isinstance(r, Event)]

    def lives(self, after: float = 0.25) -> list[Live]:
        return [r for _, r in self.poll(after) if isinstance(r, Live)]


@pytest.fixture
def follower(tmp_path: Path) -> Iterator[Follower]:
    made = Follower(tmp_path)
    yield made
    made.poller.close()


def write_steps(writer: RingWriter, *steps: int) -> None:
    for step in steps:
        writer.step(step, NS + step * 10**9, NS + (step + 1) * 10**9, None, 0, 0.0, 0.0, 0.0, 0, 0)


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as child:
        child.wait()
    return child.pid


def set_pid(path: Path, pid: int) -> None:
    """Gives the ring in `path` to another process."""
    with open(path, "r+b") as f:
        f.seek(24)  # after magic and four numbers
        f.write(pid.to_bytes(4, "little"))
    assert layout.HEADER.unpack(path.read_bytes()[: layout.HEADER.size])[5] == pid


def test_steps_of_several_ranks_arrive_once_each_under_the_agents_node_name(tmp_path: Path, follower: Follower) -> None:
    writers = [RingWriter.create(tmp_path, replace(WHO, rank=rank)) for rank in (0, 1)]
    seen: Counter[tuple[int, int, str]] = Counter()
    for step in range(5):
        for writer in writers:
            write_steps(writer, step)
        seen.update((r.rank, r.step, r.node) for name, r in follower.poll() if name == "surefoot.step" and isinstance(r, Step))
    assert seen == Counter({(rank, step, "node1"): 1 for rank in (0, 1) for step in range(5)})


def test_a_rank_that_does_not_change_is_reported_once_a_second_and_one_that_does_at_once(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    assert len(follower.lives()) == 1
    quiet = [len(follower.lives()) for _ in range(8)]
    assert sum(quiet) == 2 and LIVE_EVERY == 1.0
    writer.words[layout.STEP_WORD_OFFSET // 8] = 5
    (changed,) = follower.lives(0.01)
    assert changed.step == 4 and changed.pid == os.getpid() and changed.process_state in ("R", "S") and changed.cpu_seconds


def test_a_process_that_is_gone_is_reported_once_more_with_its_last_records(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    code = "print('ready', flush=True); input()"
    with subprocess.Popen([sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        set_pid(tmp_path / "run1-1.0.ring", child.pid)
        assert [live.process_state for live in follower.lives()] in (["R"], ["S"])
        write_steps(writer, 0, 1)
        child.kill()
    records = [r for _, r in follower.poll()]
    assert [r.step for r in records if isinstance(r, Step)] == [0, 1]
    assert [r.process_state for r in records if isinstance(r, Live)] == ["X"]
    assert [follower.poll() for _ in range(10)] == [[]] * 10


def test_a_monitor_closed_in_good_order_is_reported_once_more_and_then_no_more(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    follower.poll()
    write_steps(writer, 0)
    writer.close(NS + 5 * 10**9)
    assert [name for name, _ in follower.poll()] == ["surefoot.step", "surefoot.live"]
    assert [follower.poll() for _ in range(10)] == [[]] * 10
    set_pid(tmp_path / "run1-1.0.ring", dead_pid())
    again = Follower(tmp_path)  # an agent that starts afterwards
    assert [name for name, _ in again.poll()] == ["surefoot.step"]
    again.poller.close()


def test_a_later_process_with_the_same_pid_is_not_taken_for_the_trainer(tmp_path: Path) -> None:
    RingWriter.create(tmp_path / "rings", WHO)
    proc = tmp_path / "proc" / str(os.getpid())
    proc.mkdir(parents=True)
    stat = "7 (py) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 {} 0 0"
    (proc / "stat").write_text(stat.format(100))
    poller = RingPoller(tmp_path / "rings", "n", tmp_path / "proc", TICKS)
    first = poller.poll(AT, 1.0)
    (proc / "stat").write_text(stat.format(900))
    second = poller.poll(AT, 2.0)
    poller.close()
    assert [r.process_state for _, r in [*first, *second] if isinstance(r, Live)] == ["S", "X"]


def test_the_ring_of_a_dead_process_is_removed_after_ten_minutes_and_only_when_read(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    write_steps(writer, 0)
    path = tmp_path / "run1-1.0.ring"
    set_pid(path, dead_pid())
    follower.poll()
    follower.poll(KEEP_DEAD - 1)
    assert path.exists()
    follower.poll(2)
    assert not path.exists()
    assert follower.poll() == [] and follower.poller.cursors() == {}


def test_the_ring_of_a_living_process_is_kept_however_long_it_is_silent(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    follower.poll()
    follower.poll(10 * KEEP_DEAD)
    write_steps(writer, 3)
    assert [r.step for _, r in follower.poll() if isinstance(r, Step)] == [3]


def test_a_new_file_under_an_old_name_is_another_ring_read_from_its_beginning(tmp_path: Path, follower: Follower) -> None:
    write_steps(RingWriter.create(tmp_path, WHO), 0, 1, 2)
    follower.poll()
    (tmp_path / "run1-1.0.ring").unlink()
    write_steps(RingWriter.create(tmp_path, replace(WHO, created=NS + 1)), 7)
    assert [r.step for _, r in follower.poll() if isinstance(r, Step)] == [7]


def test_an_agent_that_starts_again_goes_on_where_it_was(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    write_steps(writer, 0, 1)
    follower.poll()
    write_steps(writer, 2)
    again = RingPoller(tmp_path, "node1", Path("/proc"), TICKS, follower.poller.cursors())
    assert [r.step for _, r in again.poll(AT, 1.0) if isinstance(r, Step)] == [2]
    again.close()


def test_overruns_are_counted_in_live_and_told_in_events_that_do_not_flood(tmp_path: Path, follower: Follower) -> None:
    writer = RingWriter.create(tmp_path, WHO)
    told: list[int] = []
    for _ in range(5):
        write_steps(writer, *range(CAPACITY + 10))
        told += [e.count for e in follower.events() if e.kind == "ring_overrun"]
    assert told == [10]
    later = follower.poll(OVERRUN_EVERY)
    assert [r.count for _, r in later if isinstance(r, Event)] == [40]
    assert [r.overrun for _, r in later if isinstance(r, Live)] == [50]


def test_a_ring_that_is_just_being_made_is_waited_for(tmp_path: Path, follower: Follower) -> None:
    path = tmp_path / "run1-1.0.ring"
    path.touch()
    assert follower.poll() == []
    path.unlink()
    write_steps(RingWriter.create(tmp_path, WHO), 0)
    assert [r.step for _, r in follower.poll() if isinstance(r, Step)] == [0]


def test_what_is_no_ring_is_told_once_and_harms_no_other(tmp_path: Path, follower: Follower) -> None:
    (tmp_path / "junk.0.ring").write_bytes(os.urandom(5000))
    (tmp_path / "link.0.ring").symlink_to("/etc/passwd")
    (tmp_path / "notes.txt").write_text("not looked at")
    writer = RingWriter.create(tmp_path, WHO)
    events = [e for _ in range(40) for e in follower.events()]
    assert sorted(e.attrs["path"].rpartition("/")[2] for e in events) == ["junk.0.ring", "link.0.ring"]
    assert {e.kind for e in events} == {"ring_invalid"} and follower.clock - 1000 > REFUSE_AFTER
    write_steps(writer, 0)
    assert [r.step for _, r in follower.poll() if isinstance(r, Step)] == [0]


def test_a_ring_cut_short_while_it_is_followed_is_told_once_and_let_go(tmp_path: Path, follower: Follower) -> None:
    RingWriter.create(tmp_path, WHO)
    follower.poll()
    os.truncate(tmp_path / "run1-1.0.ring", 100)
    events = [e for _ in range(40) for e in follower.events()]
    assert [(e.kind, e.message) for e in events] == [("ring_invalid", "cut short")]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a file to another user")
def test_a_file_of_another_user_cannot_speak_for_a_living_process(tmp_path: Path, follower: Follower) -> None:
    RingWriter.create(tmp_path, WHO)
    os.chown(tmp_path / "run1-1.0.ring", 12345, 12345)
    events = [e for _ in range(20) for e in follower.events()]
    assert len(events) == 1 and "owned by user 12345" in events[0].message


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    assert RingPoller(tmp_path / "absent", "n", Path("/proc"), TICKS).poll(AT, 1.0) == []


def test_a_real_monitor_in_a_trainer_killed_by_force_is_read_to_its_last_step(tmp_path: Path, follower: Follower) -> None:
    code = """
import sys, time
from surefoot import StepMonitor
m = StepMonitor()
with m.phase("load_checkpoint"): pass
for n in range(20):
    with m.step(n) as s:
        with m.phase("forward"): pass
        s.loss = 1.0 / (n + 1)
with m.step(20):
    with m.phase("backward"):
        print("ready", flush=True)
        time.sleep(60)
"""
    env = os.environ | {
        "SUREFOOT_RUN_ID": "r",
        "SUREFOOT_ATTEMPT_ID": "r-1",
        "SUREFOOT_RING_DIR": str(tmp_path),
        "SUREFOOT_NODE": "N7",
        "RANK": "2",
    }
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env, cwd=Path(__file__).parents[2]) as trainer:
        assert trainer.stdout is not None and trainer.stdout.readline() == b"ready\n"
        first = follower.poll()
        trainer.kill()
    steps = [r for _, r in first if isinstance(r, Step)]
    assert [(s.step, s.rank, s.node, s.run) for s in steps] == [(n, 2, "n7", "r") for n in range(20)]
    assert [s.loss for s in steps] == [1.0 / (n + 1) for n in range(20)] and all(s.forward is not None for s in steps)
    assert [r.code for _, r in first if isinstance(r, Event)] == ["load_checkpoint"]
    (live,) = [r for _, r in first if isinstance(r, Live)]
    assert (live.step, live.completed, live.phase, live.pid) == (20, 19, "backward", trainer.pid)
    last = [r for _, r in follower.poll() if isinstance(r, Live)]
    assert [(r.process_state, r.step, r.phase) for r in last] == [("X", 20, "backward")]
