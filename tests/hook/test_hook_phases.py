"""Phase times against a brute-force accumulator that looks at every instant."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from surefoot.hook import layout
from surefoot.hook.ring import RingWriter
from surefoot.hook.track import Phase, Step, Track

WHOLE = {"init", "load_checkpoint", "compile", "checkpoint", "eval"}
NAMES = ("data", "forward", "backward", "comm_wait", "checkpoint", "eval")


@dataclass(frozen=True)
class Node:
    """A phase with pauses around what is inside it. All pauses are whole instants."""

    phase: str
    before: int
    inner: tuple["Node", ...]
    after: int


def trees(depth: int) -> st.SearchStrategy[Node]:
    inner = st.just(()) if depth == 0 else st.lists(trees(depth - 1), max_size=3).map(tuple)
    return st.builds(Node, st.sampled_from(NAMES), st.integers(0, 5), inner, st.integers(0, 5))


class Clock:
    """Moves only when told; writes down, for each instant, the phases that are open."""

    def __init__(self) -> None:
        self.now = 1_000_000
        self.open: list[str] = []
        self.instants: list[tuple[str, ...]] = []

    def __call__(self) -> int:
        return self.now

    def wait(self, instants: int) -> None:
        self.now += instants
        self.instants += [tuple(self.open)] * instants


def play(clock: Clock, track: Track, nodes: tuple[Node, ...]) -> None:
    for node in nodes:
        with Phase(track, layout.PHASES.index(node.phase)):
            clock.open.append(node.phase)
            clock.wait(node.before)
            play(clock, track, node.inner)
            clock.wait(node.after)
            clock.open.pop()


def owner(open_phases: tuple[str, ...]) -> str | None:
    """The outermost whole phase, else the innermost one."""
    return next((p for p in open_phases if p in WHOLE), open_phases[-1] if open_phases else None)


steps = st.lists(st.lists(trees(3), max_size=3).map(tuple), min_size=1, max_size=3)


@given(steps)
def test_every_instant_of_a_step_belongs_to_one_phase_or_none(program: list[tuple[Node, ...]]) -> None:
    clock = Clock()
    writer = RingWriter()
    track = Track(writer, clock.now, clock.now, clock)
    step = Step(track)
    for number, nodes in enumerate(program):
        clock.instants.clear()
        step.number = number
        began = clock.now
        with step:
            clock.wait(1)
            play(clock, track, nodes)
        expected = {name: sum(owner(i) == name for i in clock.instants) for name in layout.PHASES}
        _, _, _, got_step, started, ended, *rest = layout.STEP.unpack_from(writer._slots[number][0])
        assert (got_step, started, ended) == (number, began, clock.now)
        assert dict(zip(layout.PHASES, rest[5:], strict=True)) == expected
    assert track.errors == 0


@given(st.lists(trees(2), min_size=1, max_size=4).map(tuple))
def test_outside_a_step_each_outermost_phase_is_one_record_with_all_its_time(nodes: tuple[Node, ...]) -> None:
    clock = Clock()
    writer = RingWriter()
    track = Track(writer, clock.now, clock.now, clock)
    expected = []
    for node in nodes:
        clock.wait(2)
        began = clock.now
        play(clock, track, (node,))
        expected.append((layout.PHASES.index(node.phase), 0, began, clock.now))
    assert [layout.PHASE_RECORD.unpack_from(writer._slots[n][0])[2:] for n in range(len(nodes))] == expected


def test_a_phase_object_may_be_kept_and_used_in_every_step() -> None:
    clock = Clock()
    writer = RingWriter()
    track = Track(writer, clock.now, clock.now, clock)
    step, forward = Step(track), Phase(track, layout.PHASES.index("forward"))
    for number in range(3):
        step.number = number
        with step, forward:
            clock.wait(number + 1)
    spent = [layout.STEP.unpack_from(writer._slots[n][0])[11 + layout.PHASES.index("forward")] for n in range(3)]
    assert spent == [1, 2, 3]
