"""Slurm's words: text and JSON of several versions, hosts, states, what was lost; a program that hangs or floods."""

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer

from exporters.collector import RankProcess, Reading, Site
from exporters.scheduler.book import Book
from exporters.scheduler.collector import SchedulerCollector
from exporters.scheduler.slurm import SlurmWatch
from exporters.sources.command import output
from exporters.sources.scheduler.cluster import SchedJob, SchedNode
from exporters.sources.scheduler.slurm import Scontrol, jobs, local_jobs, nodes, of_json, records
from pipeline.records import Event
from pipeline.settings import AgentSettings, SlurmSettings

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
FIXTURES = Path(__file__).parents[1] / "fixtures"


def node(state: str, **more: str) -> SchedNode:
    (found,) = nodes([{"NodeName": "N1", "State": state, **more}])
    return found


# --- what it says ----------------------------------------------------------------------------


def test_values_with_blanks_and_equal_signs_in_them_are_whole() -> None:
    first, second = records((FIXTURES / "slurm/nodes").read_text())
    assert first["OS"] == "Linux 6.1.0-18-amd64 #1 SMP PREEMPT_DYNAMIC"
    assert second["Reason"] == "Not responding = no answer [slurm@1796039000]"


@pytest.mark.parametrize(
    ("state", "ready", "schedulable"),
    [
        ("IDLE", True, True),
        ("MIXED+PLANNED", True, True),
        ("ALLOCATED", True, True),
        ("IDLE+DRAIN", True, False),
        ("ALLOCATED+DRAIN+COMPLETING", True, False),
        ("DOWN", False, False),
        ("DOWN*+DRAIN", False, False),
        ("IDLE*", False, False),
        ("IDLE+NOT_RESPONDING", False, False),
        ("FAIL", False, False),
        ("IDLE~", None, None),
        ("IDLE#", None, None),
        ("IDLE+CLOUD+POWERED_DOWN", None, None),
        ("DOWN+POWERED_DOWN", None, None),
        ("IDLE+MAINTENANCE", None, None),
        ("ALLOCATED+REBOOT_ISSUED", None, None),
        ("down", False, False),
    ],
)
def test_a_node_is_unfit_where_slurm_says_so_and_not_where_it_is_meant_to_be_away(
    state: str, ready: bool | None, schedulable: bool | None
) -> None:
    assert (node(state).ready, node(state).schedulable) == (ready, schedulable)


def test_gpus_are_counted_from_what_slurm_tracks_else_from_what_the_node_has() -> None:
    assert node("IDLE", CfgTRES="cpu=8,gres/gpu=8,gres/gpu:h100=8", AllocTRES="cpu=1,gres/gpu=3").gpus_used == 3
    assert node("IDLE", CfgTRES="cpu=8,gres/gpu=8", AllocTRES="").gpus_used == 0
    told = node("IDLE", CfgTRES="cpu=8", Gres="gpu:h100:4(S:0),gpu:a100:2(S:1),shard:8")
    assert (told.gpus, told.gpus_used) == (6, None), "what is not tracked is not known, and never 0"


def test_names_are_folded_and_lists_of_nodes_written_out() -> None:
    assert node("IDLE").name == "n1"
    (job,) = jobs([{"JobId": "7", "JobState": "RUNNING", "NodeList": "GPU-[001-002,7]"}])
    assert job.nodes == ("gpu-001", "gpu-002", "gpu-7")


JSON_23_02 = {
    "jobs": [
        {
            "job_id": 42,
            "name": "sft",
            "job_state": ["PENDING", "REQUEUED"],
            "state_reason": "Resources",
            "nodes": "",
            "restart_cnt": 2,
            "submit_time": {"set": True, "infinite": False, "number": 1796039900},
            "comment": "surefoot:run=run1, by hand",
            "tres_req_str": "cpu=256,node=4,gres/gpu=32",
        }
    ]
}
JSON_21_08 = {"jobs": [{**JSON_23_02["jobs"][0], "job_state": "PENDING", "submit_time": 1796039900}]}


@pytest.mark.parametrize(("given_", "lost"), [(JSON_23_02, "requeued"), (JSON_21_08, "")])
def test_jobs_in_json_of_two_ages_say_the_same_as_in_text(given_: dict[str, Any], lost: str) -> None:
    (told,) = jobs(of_json(json.dumps(given_), "jobs"))
    (text,) = (job for job in jobs(records((FIXTURES / "slurm/jobs").read_text())) if job.id == "42")
    assert (told.lost, told.run) == (lost, "run1")
    assert replace(told, lost="", run="") == text


def test_nodes_in_json_bear_their_states_as_a_list_or_as_a_word() -> None:
    new = {"nodes": [{"name": "n1", "state": ["IDLE", "DRAIN", "NOT_RESPONDING"], "reason": "x", "tres": "gres/gpu=8", "tres_used": None}]}
    old = {"nodes": [{"name": "n1", "state": "idle", "state_flags": ["DRAIN", "NOT_RESPONDING"], "reason": "x", "tres": "gres/gpu=8"}]}
    assert nodes(of_json(json.dumps(new), "nodes")) == nodes(of_json(json.dumps(old), "nodes"))
    assert nodes(of_json(json.dumps(new), "nodes"))[0].bad == {"NOT_RESPONDING": "x"}


@pytest.mark.parametrize("answer", ["", "[]", "{}", "null", '{"jobs": 3}', '{"jobs": [1, null, {}]}', "[" * 100_000])
def test_an_answer_that_is_no_list_of_jobs_gives_none_or_an_error_in_a_line(answer: str) -> None:
    try:
        assert jobs(of_json(answer, "jobs")) == []
    except OSError as e:
        assert "\n" not in str(e)


@given(st.text())
def test_any_text_gives_nodes_and_jobs_or_nothing(text: str) -> None:
    for found in (records(text), records(f"NodeName={text} State=IDLE{text}\nJobId={text} JobState={text} NodeList={text}")):
        nodes(found), jobs(found), local_jobs(text)


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_json_gives_nodes_and_jobs_or_nothing(value: Any) -> None:
    names = ("name", "state", "job_id", "job_state", "nodes", "restart_cnt", "submit_time", "tres", "comment")
    text = json.dumps({"nodes": [dict.fromkeys(names, value)], "jobs": [dict.fromkeys(names, value)]})
    nodes(of_json(text, "nodes")), jobs(of_json(text, "jobs"))


def test_a_job_that_waits_for_the_first_time_or_is_held_has_lost_no_place() -> None:
    told = {"JobId": "7", "JobState": "PENDING", "SubmitTime": "1796039900"}
    assert [jobs([{**told, "Restarts": n, "Reason": why}])[0].unplaced_since for n, why in (("0", ""), ("1", "JobHeldUser"))] == [
        None,
        None,
    ]
    assert jobs([{**told, "Restarts": "1", "Reason": "BeginTime"}])[0].unplaced_since == 1796039900


# --- how it is asked -------------------------------------------------------------------------


def test_json_is_tried_once_and_then_the_text_is_read() -> None:
    asked: list[tuple[str, ...]] = []

    def ask(words: tuple[str, ...]) -> str:
        asked.append(words)
        if "--json" in words:
            raise OSError("scontrol ended with 1: unrecognized option '--json'")
        return "NodeName=n1 State=IDLE\n"

    scontrol = Scontrol(ask)
    assert [len(scontrol.show("nodes")), len(scontrol.show("nodes"))] == [1, 1]
    assert asked == [("show", "nodes", "--json"), ("-o", "show", "nodes"), ("-o", "show", "nodes")]


def test_a_program_that_hangs_floods_fails_or_is_not_there_is_told_in_a_line() -> None:
    with pytest.raises(OSError, match=r"did not end within 0\.2 s"):
        output((sys.executable, "-c", "import time; time.sleep(60)"), 0.2, 100)
    with pytest.raises(OSError, match="prints more than 100 bytes"):
        output((sys.executable, "-c", "print('x' * 101)"), 30, 100)
    with pytest.raises(OSError, match="ended with 3: why"):
        output((sys.executable, "-c", "import sys; print('why', file=sys.stderr); sys.exit(3)"), 30, 100)
    with pytest.raises(OSError, match="no-such-program"):
        output(("no-such-program",), 30, 100)
    assert output((sys.executable, "-c", "print('$HOME; ls')"), 30, 100) == "$HOME; ls\n", "no shell reads it"


def site(scheduler: str, **more: Any) -> Site:
    settings = AgentSettings(schedulers=(scheduler,), slurm=SlurmSettings(scontrol=str(FIXTURES / "bin/scontrol"), **more))  # type: ignore[arg-type]
    return Site("node1", proc=FIXTURES / "proc", cgroups=FIXTURES / "sys/fs/cgroup", settings=settings)


def test_a_node_asks_after_itself_and_its_own_jobs_only() -> None:
    found = [one for one in SlurmWatch(site("slurm"), whole=False).look(AT) if isinstance(one, Reading)]
    assert [r.identity for r in found] == [
        {"node": "node1", "scheduler": "slurm"},
        {"node": "node1", "scheduler": "slurm", "job": "41"},
    ]


def test_a_job_is_joined_to_the_run_whose_ranks_are_in_its_control_group(tmp_path: Path) -> None:
    (tmp_path / "proc/4711").mkdir(parents=True)
    (tmp_path / "proc/4711/cgroup").write_text("0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n")
    group = tmp_path / "cgroup/system.slice/slurmstepd.scope/job_42/step_0/user/task_0"
    group.mkdir(parents=True)
    (group / "memory.events").write_text("oom_kill 0\n")
    here = replace(
        site("slurm-cluster"),
        proc=tmp_path / "proc",
        cgroups=tmp_path / "cgroup",
        ranks=lambda: (RankProcess("run9", 0, 4711, 1),),
    )
    found = [one for one in SlurmWatch(here, whole=True).look(AT) if isinstance(one, Reading) and one.family.name == "sched_job"]
    assert {r.identity["job"]: r.attributes.get("run") for r in found} == {"41": "run1", "42": "run9"}


def test_slurmrestd_is_asked_with_its_token_and_the_version_of_the_settings(httpserver: HTTPServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("jwt\n")
    headers = {"X-SLURM-USER-NAME": "watch", "X-SLURM-USER-TOKEN": "jwt"}
    httpserver.expect_request("/slurm/v0.0.44/jobs/", headers=headers).respond_with_json(JSON_23_02)
    httpserver.expect_request("/slurm/v0.0.44/nodes/", headers=headers).respond_with_json({"nodes": [{"name": "n1", "state": ["DOWN"]}]})
    here = site(
        "slurm-cluster", url=httpserver.url_for("").rstrip("/"), version="v0.0.44", user="watch", token_file=str(tmp_path / "token")
    )
    found = [one for one in SlurmWatch(here, whole=True).look(AT) if isinstance(one, Reading)]
    assert [(r.family.name, r.values.get("sched_node.ready"), r.values.get("sched_job.gpus")) for r in found] == [
        ("sched_node", 0, None),
        ("sched_job", None, 32),
    ]


def test_a_scheduler_that_does_not_answer_fails_the_pass_and_says_why() -> None:
    nobody = Site("node1", settings=AgentSettings(schedulers=("slurm-cluster",), slurm=SlurmSettings(scontrol="no-such-scontrol")))
    with pytest.raises(OSError, match="no-such-scontrol"):
        list(SchedulerCollector(nobody).collect(AT))
    assert list(SchedulerCollector(Site("node1")).collect(AT)) == [], "none is watched by default"


# --- what has happened -------------------------------------------------------------------------


def told(book: Book, seconds: float, *these: SchedJob) -> list[Event]:
    return [one for one in book.jobs(these, AT + timedelta(seconds=seconds)) if isinstance(one, Event)]


RUNNING = SchedJob("7", "sft", running=True, nodes=("n1", "n2"), starts=0, run="run1")


def test_a_requeue_is_told_once_with_the_nodes_that_the_job_had() -> None:
    book = Book("slurm", "watcher")
    again = replace(RUNNING, running=False, nodes=(), starts=1, reason="BeginTime")
    assert told(book, 0, RUNNING) == []
    (lost,) = told(book, 5, again)
    assert (lost.kind, lost.code, lost.node, lost.run, lost.attrs["nodes"]) == ("place_lost", "requeued", "n1", "run1", "n[1-2]")
    assert told(book, 10, again) == [] and told(book, 15, replace(RUNNING, starts=1)) == []
    assert [e.code for e in told(book, 20, replace(again, starts=2))] == ["requeued"], "a second time is another"


def test_what_was_lost_before_the_first_look_is_told_only_with_its_own_time() -> None:
    assert told(Book("slurm", "w"), 0, replace(RUNNING, lost="preempted")) == []
    since = AT.timestamp() - 30
    (first,) = told(Book("kubernetes", "w"), 0, replace(RUNNING, lost="evicted", lost_at=since))
    (again,) = told(Book("kubernetes", "w"), 60, replace(RUNNING, lost="evicted", lost_at=since))
    assert first.at == AT - timedelta(seconds=30) and (first.id, first.at) == (again.id, again.at), "another agent says the same again"


def test_conditions_are_told_as_they_begin_and_end() -> None:
    book, well = Book("slurm", "w"), SchedNode("n1", True, True)
    sick = replace(well, ready=False, bad={"DOWN": "Not responding"})

    def conditions(seconds: int, one: SchedNode) -> list[tuple[str, str, str]]:
        found = book.nodes([one], AT + timedelta(seconds=seconds))
        return [(e.node, e.code, e.attrs["state"]) for e in found if isinstance(e, Event)]

    assert conditions(0, sick) == [], "what was so before is no news"
    assert [conditions(5, well), conditions(10, sick), conditions(15, sick)] == [[("n1", "DOWN", "ended")], [("n1", "DOWN", "began")], []]


def test_a_flood_of_jobs_is_cut_where_it_matters_least() -> None:
    many = [SchedJob(str(n), "queued", running=False) for n in range(6000)] + [RUNNING]
    found = [one for one in Book("slurm", "w").jobs(many, AT) if isinstance(one, Reading)]
    assert len(found) == 5000 and found[0].identity["job"] == "7"
