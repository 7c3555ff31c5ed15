"""The command line: what cannot be meant is refused in one line, with exit code 2."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from surefoot.cli import cli
from surefoot.drill.stack import free_ports

BARE = {k: v for k, v in os.environ.items() if not k.startswith("SUREFOOT_")}


def surefoot(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-P", "-m", "surefoot", *words]
    return subprocess.run(argv, env=BARE | environment, capture_output=True, text=True, check=False, timeout=60)


def floats() -> Iterator[tuple[str, click.Option]]:
    for name, command in cli.commands.items():
        for option in command.params:
            if isinstance(option, click.Option) and isinstance(option.type, click.types.FloatParamType):
                yield name, option


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "-1"])
def test_a_number_that_is_none_is_refused_by_every_option_that_takes_one(value: str) -> None:
    found = list(floats())
    assert [(name, option.name) for name, option in found] == [("drill", "timeout")]
    for name, option in found:
        done = surefoot(name, "kill", option.opts[0], value)
        assert done.returncode == 2
        assert done.stderr.splitlines()[-1] == (
            f"Error: Invalid value for '{option.opts[0]}': {float(value)} is not in the range 20<=x<=3600."
        )


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["run", "--run-id", "", "--", "true"], "surefoot: run id '' must be 1 to 60 letters, digits"),
        (["run", "--run-id", "<b>ghost'", "--", "true"], 'surefoot: run id "<b>ghost\'" must be 1 to 60 letters, digits'),
        (["run", "--checkpoints", "", "--", "true"], "Error: Invalid value for '--checkpoints': it must not be empty."),
        (["drill", "kill", "--where", "inside"], "Error: --where is for hang only"),
        (["drill", "kill", "--where", "outside"], "Error: --where is for hang only"),
        (["drill", "kill", "--keep", ""], "Error: Invalid value for '--keep': it must not be empty."),
        (["drill", "kill", "--keep", "/proc/foo/x"], "surefoot: cannot use /proc/foo: No such file or directory"),
        (["drill", "kill", "--keep", f"{__file__}/x"], f"surefoot: cannot use {__file__}/x: Not a directory"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused_in_one_line(words: list[str], told: str) -> None:
    done = surefoot(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(told)
    assert "Traceback" not in done.stderr


def test_a_drill_into_a_folder_that_holds_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = surefoot("drill", "kill", "--keep", str(tmp_path))
    assert (done.returncode, done.stderr.splitlines()) == (2, [f"surefoot: {tmp_path} is not empty: name a new folder"])


@pytest.mark.parametrize("command", ["store", "ingest", "jobs", "agent"])
def test_a_state_folder_that_cannot_be_had_is_named_by_every_part(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    ports = {f"SUREFOOT_{part}__PORT": str(port) for part, port in zip(("STORE", "INGEST", "AGENT"), free_ports(3), strict=True)}
    done = surefoot(command, SUREFOOT_STATE_DIR=str(tmp_path / "file/state"), **ports)
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert str(tmp_path / "file/state") in done.stderr


ASKING = [
    ["report"],
    ["change", "list"],
    ["silence", "list"],
    ["maintenance", "list"],
    ["actions", "pause", "--reason", "x"],
    ["stop", "r", "--reason", "x"],
]


@pytest.mark.parametrize("words", ASKING, ids=" ".join)
def test_who_asks_where_no_store_was_started_is_told_what_to_do_and_leaves_nothing_behind(tmp_path: Path, words: list[str]) -> None:
    done = surefoot(*words, SUREFOOT_STATE_DIR=str(tmp_path / "state"), SUREFOOT_STORE__PORT="1")
    told = f"no store was started in {tmp_path}/state: begin with `surefoot up`, or name a server's store in SUREFOOT_CLICKHOUSE_URL"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"surefoot: {told}\n")
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_does_not_answer_is_named_without_its_password(tmp_path: Path) -> None:
    done = surefoot("report", SUREFOOT_STATE_DIR=str(tmp_path), SUREFOOT_CLICKHOUSE_URL="http://me:secret@127.0.0.1:1")
    assert (done.returncode, "secret" in done.stderr) == (2, False)
    assert done.stderr == "surefoot: the store does not answer: [Errno 111] Connection refused (127.0.0.1): does that server run?\n"
    done = surefoot("report", SUREFOOT_STATE_DIR=str(tmp_path), SUREFOOT_STORE__PORT="1", SUREFOOT_STORE__PASSWORD="x")
    assert done.stderr.endswith("(127.0.0.1:1): begin with `surefoot up`, or name a server's store in SUREFOOT_CLICKHOUSE_URL\n")


def test_an_option_of_run_that_is_none_is_not_taken_for_the_command() -> None:
    done = surefoot("run", "--chekpoints", "/data", "--", "python", "train.py")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "Error: No such option '--chekpoints'. Did you mean '--checkpoints'?")


def test_a_command_that_may_not_be_executed_ends_as_in_a_shell(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print()\n")
    done = surefoot("run", "--", str(tmp_path / "train.py"), SUREFOOT_STATE_DIR=str(tmp_path / "state"))
    assert (done.returncode, done.stderr) == (126, f"surefoot run: '{tmp_path}/train.py' may not be executed\n")
