"""`surefoot doctor --coverage` as a person and as a script calls it."""

import json

from click.testing import CliRunner, Result

from pipeline.catalog.faults import FAULTS
from surefoot.cli import cli


def called(*words: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *words])


def test_every_fault_stands_in_the_list_with_what_finds_it_or_what_it_waits_for() -> None:
    done = called("--coverage")
    assert done.exit_code == 0
    for fault in FAULTS:
        (line,) = [line for line in done.output.splitlines() if line.split()[:1] == [fault.name]]
        assert ("not covered: waits for" in line) is bool(fault.waits_for)
    rows = [line.strip() for line in done.output.splitlines()]
    assert any(row.split(None, 1) == ["rank_crash", "rank_exit"] for row in rows)
    assert "fault_rule: mount.inodes_free / mount.inodes <= 0.02 and mount.read_only <= 0" in rows
    assert any(row.startswith("gpu_fell_off_bus ") and row.endswith("not covered: waits for the GPU exporter") for row in rows)
    assert rows[-1] == "15 of 71 faults are covered"


def test_the_same_as_json_is_one_object_on_one_line() -> None:
    done = called("--coverage", "--json")
    assert done.exit_code == 0 and done.output.count("\n") == 1
    rows = {row["name"]: row for row in json.loads(done.output)["faults"]}
    assert rows.keys() == {f.name for f in FAULTS}
    assert rows["restart_loop"]["covered_by"] == ["policy: the limits on restarts"]
    assert (rows["link_down"]["covered_by"], rows["link_down"]["waits_for"]) == ([], "the network's exporter")
    assert rows["rank_crash"]["first_action"] == "restart_run"


def test_without_a_question_it_says_which_to_ask() -> None:
    done = called()
    assert done.exit_code == 2 and "--coverage" in done.output
