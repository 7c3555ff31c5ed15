"""Who a training process is, from its environment alone."""

import pytest

from surefoot.hook.environment import identity, why_off


@pytest.mark.parametrize(
    ("environ", "rank"),
    [
        ({}, 0),
        ({"RANK": "5"}, 5),
        ({"SLURM_PROCID": "6"}, 6),
        ({"OMPI_COMM_WORLD_RANK": "7"}, 7),
        ({"RANK": "5", "SLURM_PROCID": "6"}, 5),
        ({"RANK": "five", "SLURM_PROCID": "6"}, 6),
        ({"RANK": "-1"}, 0),
        ({"RANK": ""}, 0),
        ({"RANK": "²"}, 0),
        ({"RANK": "99999999999"}, 0),
    ],
)
def test_the_rank_is_the_first_one_that_is_a_number(environ: dict[str, str], rank: int) -> None:
    assert identity(environ, "host", 0).rank == rank


def test_an_inner_restart_of_torchrun_is_an_attempt_of_its_own() -> None:
    environ = {"SUREFOOT_ATTEMPT_ID": "r-2", "TORCHELASTIC_RESTART_COUNT": "0"}
    assert identity(environ, "host", 0).attempt == "r-2"
    assert identity({**environ, "TORCHELASTIC_RESTART_COUNT": "3"}, "host", 0).attempt == "r-2.3"


def test_the_node_is_the_launchers_word_for_it_in_lower_case() -> None:
    assert identity({}, "Node01-CPU01", 0).node == "node01-cpu01"
    assert identity({"SUREFOOT_NODE": "GPU-7"}, "host", 0).node == "gpu-7"


def test_nothing_is_recorded_outside_surefoot_run_or_when_switched_off() -> None:
    assert "SUREFOOT_ATTEMPT_ID is not set" in why_off({})
    assert "SUREFOOT_MONITOR_OFF" in why_off({"SUREFOOT_ATTEMPT_ID": "r-1", "SUREFOOT_MONITOR_OFF": "1"})
    assert why_off({"SUREFOOT_ATTEMPT_ID": "r-1"}) == ""


@pytest.mark.parametrize("attempt", ["", "../r-1", "a/b", ".hidden", "a\0b", "x" * 97])
def test_an_attempt_that_cannot_be_a_files_name_is_refused(attempt: str) -> None:
    with pytest.raises(ValueError, match="attempt"):
        identity({"SUREFOOT_ATTEMPT_ID": attempt}, "host", 0).header()
