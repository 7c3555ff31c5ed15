"""How many nodes a run takes, what it is called, and what its command is told of them."""

import socket
import threading
import time
from datetime import UTC, datetime

import pytest

from exporters.job.control import Issued
from exporters.job.nodes import address_towards, check_found_together, run_id, told, unknown, wanted
from pipeline.catalog.runs import Nodes, parse_nodes
from pipeline.errors import InputError

AT = datetime(2026, 11, 30, 12, 0, 7, tzinfo=UTC)
SLURM = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_NODES": "4"}


@pytest.mark.parametrize(
    ("given", "command", "environment", "nodes"),
    [
        (None, ["torchrun", "t.py"], {}, Nodes(1, 1)),
        ("2", ["torchrun", "t.py"], {}, Nodes(2, 2)),
        ("2:4", ["torchrun", "--nnodes", "8", "t.py"], SLURM, Nodes(2, 4)),  # what a person says counts
        (None, ["torchrun", "--nnodes=2:8", "t.py"], {}, Nodes(2, 8)),
        (None, ["torchrun", "--nnodes", "3", "t.py"], SLURM, Nodes(3, 3)),
        (None, ["torchrun", "--nnodes", "{nnodes}", "t.py"], SLURM, Nodes(4, 4)),
        (None, ["python", "t.py"], {"SLURM_JOB_ID": "1", "SLURM_NNODES": "4"}, Nodes(1, 1)),  # in a batch script, not under srun
    ],
)
def test_nodes_are_what_a_person_says_else_torchrun_else_slurm(
    given: str | None, command: list[str], environment: dict[str, str], nodes: Nodes
) -> None:
    assert wanted(given, command, environment) == nodes


@pytest.mark.parametrize("text", ["0", "4:2", "two", "1:", ":2", "-1", "1:2:3", "9999999", "٣"])
def test_what_is_no_count_of_nodes_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError, match=r"must be a number such as 4, or least and most such as 2:4"):
        parse_nodes(text)


@pytest.mark.parametrize("text", ["", "2", "2:4"])
def test_a_count_of_nodes_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_nodes(text)) == text


@pytest.mark.parametrize(
    ("given", "command", "environment", "name"),
    [
        ("mine", ["torchrun"], SLURM, "mine"),
        (None, ["torchrun", "--rdzv-id", "x"], SLURM, "slurm-4711"),
        (None, ["torchrun"], SLURM | {"SLURM_STEP_ID": "2"}, "slurm-4711.2"),
        (None, ["torchrun", "--rdzv_id=pre train/7", "t.py"], {}, "pre-train-7"),
    ],
)
def test_a_run_is_called_as_a_person_says_else_after_the_slurm_job_else_after_the_rendezvous(
    given: str | None, command: list[str], environment: dict[str, str], name: str
) -> None:
    assert run_id(given, command, environment, AT) == name


def test_without_any_of_these_every_start_is_a_run_of_its_own() -> None:
    assert run_id(None, ["/usr/bin/torchrun"], {}, AT).startswith("torchrun-20261130-120007-")


def test_launchers_of_several_nodes_that_share_no_name_are_refused() -> None:
    with pytest.raises(InputError, match="give each launcher the same --run-id"):
        check_found_together(Nodes(2, 2), None, ["torchrun", "--nnodes", "2"], {})
    check_found_together(Nodes(2, 2), "r", ["torchrun"], {})
    check_found_together(Nodes(2, 2), None, ["torchrun", "--rdzv-id", "7"], {})
    check_found_together(Nodes(), None, ["torchrun"], {})


def test_the_holes_of_a_command_are_filled_and_nothing_else_is_touched() -> None:
    issued = Issued("r-1", 1, ("b", "a"), "10.0.0.2")
    command = ["torchrun", "--nnodes={nnodes}", "--node-rank", "{node_rank}", "--master-addr={master}", "{x}", "{}", "{{nnodes}}"]
    assert told(command, issued, "a") == [
        "torchrun",
        "--nnodes=2",
        "--node-rank",
        "1",
        "--master-addr=10.0.0.2",
        "{x}",
        "{}",
        "{2}",
    ]
    assert told(["{nnodes}", "{node_rank}", "{master}"], Issued("r-1", 1), "a") == ["1", "0", "127.0.0.1"]
    assert unknown(command) == "{nnodes}, {node_rank}, {master}"
    assert unknown(["torchrun"]) == ""


def test_an_empty_count_of_nodes_is_a_mistake_and_not_one_node() -> None:
    for text in ("", " "):
        with pytest.raises(InputError, match=r"^--nodes is empty: give a number such as 4, .* or leave it out$"):
            wanted(text, ["torchrun", "--nnodes", "3"], {})


def test_our_address_is_the_one_that_leads_to_the_control_plane() -> None:
    assert address_towards("http://no-such-host.invalid:4318", "gpu-1") == "gpu-1"


def test_a_resolver_that_does_not_answer_keeps_no_run_from_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.wait(60) and [])
    began = time.monotonic()
    assert address_towards("http://control.invalid:4318", "gpu-1") == "gpu-1"
    answers.set()
    assert time.monotonic() - began < 10


def test_over_loopback_it_is_our_name_where_that_is_a_hosts_else_loopback_as_for_all_launchers_of_one_machine() -> None:
    for endpoint in ("http://127.0.0.1:4318", "http://localhost:4318"):
        assert address_towards(endpoint, "localhost") == "localhost"
        for name in ("gpu-1.invalid", "a..b", "x" * 64):
            assert address_towards(endpoint, name) == "127.0.0.1", name
