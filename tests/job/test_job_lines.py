"""Which rank printed a line, where lines end, and what torchrun reports."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.job.lines import MAX_LINE, Closing, Piece, Report, Splitter, pieces, torchrun_word

PREFIX = st.builds("[{}{}]:".format, st.sampled_from(["rank", "default"]), st.integers(0, 9_999_999))
PLAIN = st.text(alphabet="abc 019=.:[]{}\t", max_size=30)
GLUED = st.text(alphabet="abc019=.", min_size=1, max_size=20)


def test_two_ranks_on_one_physical_line_are_two_records() -> None:
    assert pieces("[rank3]: step=10 t=0.51[rank5]: step=10 t=0.52") == [
        Piece("[rank3]: step=10 t=0.51", 3),
        Piece("[rank5]: step=10 t=0.52", 5),
    ]


def test_a_local_rank_on_the_third_node_of_eight_devices_each_is_rank_19() -> None:
    (piece,) = pieces("[default3]:loss 2.5")
    assert piece.global_rank(2 * 8) == 19
    assert piece.global_rank(None) is None


def test_a_line_that_only_speaks_of_a_rank_is_nobodys() -> None:
    assert pieces("waiting for [rank5]: it is late") == [Piece("waiting for [rank5]: it is late")]


@given(st.one_of(PLAIN, st.lists(st.one_of(PLAIN, PREFIX), max_size=8).map("".join)))
def test_pieces_joined_are_the_line(line: str) -> None:
    assert "".join(p.text for p in pieces(line)) == line


@given(st.lists(st.tuples(st.integers(0, 4095), GLUED), min_size=1, max_size=6))
def test_every_prefixed_record_that_was_glued_together_comes_apart(records: list[tuple[int, str]]) -> None:
    line = "".join(f"[rank{rank}]: {text}" for rank, text in records)
    assert [(p.rank, p.text) for p in pieces(line)] == [(rank, f"[rank{rank}]: {text}") for rank, text in records]


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(1, 7))
def test_lines_do_not_depend_on_how_the_bytes_arrived(parts: list[bytes], size: int) -> None:
    data = b"\n".join(parts)
    wanted = [p.decode("utf-8", "replace") for p in data.replace(b"\r", b"\n").split(b"\n") if p]
    splitter = Splitter()
    got = [line for i in range(0, len(data), size) for line in splitter.feed(data[i : i + size])] + splitter.finish()
    assert got == wanted


def test_a_line_without_end_is_cut_and_does_not_grow_in_memory() -> None:
    splitter = Splitter()
    lines = [line for _ in range(100) for line in splitter.feed(b"x" * 1000)] + splitter.finish()
    assert max(map(len, lines)) == MAX_LINE
    assert sum(map(len, lines)) == 100_000


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (
            "E1130 08:59:05.007000 9439 torch/…/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 9444) of binary: /usr/bin/python",
            Report(9444, -9),
        ),
        ("  exitcode  : -15 (pid: 9443)  (SIGTERM)", Report(9443, -15)),
        ("  exitcode  : 1 (pid: 9443)", Report(9443, 1)),
        ("  traceback : Signal 9 (SIGKILL) received by PID 9444", Report(9444, -9)),
        ("W1130 08:59:05.005000 9439 torch/…/api.py:1028] Sending process 9443 closing signal SIGTERM", Closing(9443)),
        ("Unable to shutdown process 9443 via 15, forcefully exiting via 9", Closing(9443)),
        ("the exitcode of my model: -9 (pid: none)", None),
    ],
)
def test_torchruns_words_on_its_workers_are_understood(line: str, word: Report | Closing | None) -> None:
    assert torchrun_word(line) == word  # lines as torch 2.13 prints them
