"""The leader's lock and term, and ages that clocks cannot fool."""

import subprocess
import sys
import time
from pathlib import Path
from threading import Event, Timer

import pytest

from alerts.ages import Ages
from alerts.leader import TermUnreadable, lead


def test_terms_grow_and_a_second_leader_waits_for_the_first_to_die(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from threading import Event; from alerts.leader import lead\n"
        "with lead(Path(sys.argv[1]), Event()) as term: print(term, flush=True); time.sleep(60)"
    )
    with lead(tmp_path, Event()) as term:
        assert term == 1
        other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        time.sleep(0.5)
        assert (tmp_path / "leader.term").read_text() == "1\n"
    assert other.stdout is not None
    assert other.stdout.readline() == "2\n"
    other.kill()
    other.wait()
    other.stdout.close()
    with lead(tmp_path, Event()) as term:
        assert term == 3


def test_one_that_waits_to_lead_can_be_stopped(tmp_path: Path) -> None:
    stopping = Event()
    with lead(tmp_path, Event()):
        Timer(0.2, stopping.set).start()
        with lead(tmp_path, stopping) as term:
            assert term is None
    assert (tmp_path / "leader.term").read_text() == "1\n", "a term that nobody took is not spent"


def test_a_term_that_cannot_be_read_is_not_guessed(tmp_path: Path) -> None:
    (tmp_path / "leader.term").write_text("")
    with pytest.raises(TermUnreadable), lead(tmp_path, Event()):
        pass


def test_a_clock_that_steps_by_an_hour_is_no_silence_and_no_age_is_negative() -> None:
    """Beats each 10 s; the wall clock jumps by 3600 s at 50 s, and back at 100 s; the limit is 120 s."""
    ages = Ages()
    wall_step = 0.0
    last_beat = 0.0
    for tick in range(0, 300):
        seconds = tick * 0.5
        wall_step = 3600.0 if 50 <= seconds < 100 else 0.0
        if seconds % 10 == 0:
            last_beat = seconds + wall_step
        ages.begin(seconds)
        age = ages.of("beat", last_beat, seconds + wall_step - last_beat)
        assert 0.0 <= age <= 12.0, seconds


def test_an_age_is_the_wall_clocks_where_that_is_plausible() -> None:
    ages = Ages()
    ages.begin(100.0)
    assert ages.of("x", 1, 30.0) == 30.0, "after our start there is nothing else to go by"
    ages.begin(100.5)
    assert ages.of("x", 1, 30.5) == pytest.approx(30.5)
    assert ages.of("y", 1, 0.7) == pytest.approx(0.7)
    assert ages.of("z", 1, 90.0) == 0.0, "it was not there half a second ago"
    ages.begin(104.0)
    assert ages.of("x", 2, 1.2) == pytest.approx(1.2)
    assert ages.of("y", 1, -5.0) == pytest.approx(4.2)
