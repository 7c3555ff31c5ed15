"""What an attempt runs with: read from real git repositories and folders of packages, and sent by a real launcher."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from exporters.job import probe
from exporters.job.facts import Facts, capped, own_facts
from exporters.job.hidden import HIDDEN, is_secret, masked, masked_words
from exporters.job.tree import Tree
from pipeline.catalog.facts import MAX_FACTS, MAX_TEXT

ME = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


def git(folder: Path, *words: str) -> str:
    environment = os.environ | ME | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    return subprocess.run(["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit of train.py and big.bin, and a subfolder."""
    top = tmp_path / "repository"
    (top / "sub").mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    (top / "train.py").write_text("lr = 1\n")
    (top / "big.bin").write_bytes(b"\0" * 1000)
    git(top, "add", ".")
    git(top, "commit", "-q", "-m", "Raise the learning rate")
    return top


def seen(folder: Path, *words: str, seconds: float = 20.0) -> dict[str, str]:
    return probe.git(str(folder), words, time.monotonic() + seconds)


# --- git -------------------------------------------------------------------------------------


def test_a_clean_repository_tells_its_commit_and_branch_and_that_nothing_is_uncommitted(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    wanted = {"code.commit": f"{head[:12]} Raise the learning rate", "code.branch": "main", "code.diff": "none"}
    assert seen(repository) == wanted | {"code.repository": str(repository)}
    assert seen(repository / "sub") == seen(repository)


def test_an_uncommitted_change_is_told_by_hash_and_name_and_the_same_change_has_the_same_hash(repository: Path) -> None:
    (repository / "train.py").write_text("lr = 2\n")
    first = seen(repository)["code.diff"]
    assert first.partition(" ")[2] == "in train.py"
    os.utime(repository / "train.py", (1, 1))
    assert seen(repository)["code.diff"] == first
    (repository / "train.py").write_text("lr = 3\n")
    assert seen(repository)["code.diff"] != first
    git(repository, "add", ".")  # staged is uncommitted too
    assert seen(repository)["code.diff"] != "none"
    git(repository, "commit", "-q", "-m", "third")
    assert seen(repository)["code.diff"] == "none"


def test_a_changed_binary_file_changes_the_hash(repository: Path) -> None:
    (repository / "big.bin").write_bytes(b"\1" * 1000)
    one = seen(repository)["code.diff"]
    (repository / "big.bin").write_bytes(b"\2" * 1000)
    two = seen(repository)["code.diff"]
    assert len({one, two, "none"}) == 3


def test_a_new_source_file_counts_but_logs_and_checkpoints_do_not(repository: Path) -> None:
    (repository / "step_100.pt").write_bytes(b"weights")
    (repository / "train.log").write_text("step 1")
    assert seen(repository)["code.diff"] == "none"
    (repository / "sub" / "model.py").write_text("layers = 2")
    one = seen(repository)["code.diff"]
    assert one.endswith("in sub/model.py")
    (repository / "sub" / "model.py").write_text("layers = 4")
    assert seen(repository)["code.diff"] != one


def test_many_changed_files_are_counted_and_odd_names_do_no_harm(repository: Path) -> None:
    for name in ("a.py", "b.py", "c.py", "d.py", "ü\n.py", "-x.py"):
        (repository / name).write_text("1")
    assert seen(repository)["code.diff"].endswith(" and 2 more")


def test_a_repository_without_a_commit_has_none(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "train.py").write_text("1")
    told = seen(tmp_path)
    assert "code.commit" not in told and told["code.branch"] == "main" and told["code.diff"].endswith("in train.py")


def test_looking_leaves_the_index_of_the_repository_alone(repository: Path) -> None:
    """git diff would refresh the index where it can: a lock that the user's own git might meet."""
    os.utime(repository / "train.py", (1, 1))
    before = (repository / ".git/index").read_bytes(), (repository / ".git/index").stat().st_mtime_ns
    seen(repository)
    assert ((repository / ".git/index").read_bytes(), (repository / ".git/index").stat().st_mtime_ns) == before
    assert not (repository / ".git/index.lock").exists()


def test_no_program_that_the_repository_names_is_run(repository: Path, tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    for key in ("core.fsmonitor", "diff.external", "core.pager", "diff.x.textconv"):
        git(repository, "config", key, f"touch {touched}")
    (repository / ".gitattributes").write_text("*.py diff=x\n")
    (repository / "train.py").write_text("lr = 5\n")
    assert seen(repository)["code.diff"] != "none"
    assert not touched.exists()


def test_outside_a_repository_the_script_s_own_folder_is_looked_at_then_it_is_said(repository: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert seen(elsewhere, "torchrun", str(repository / "train.py"))["code.repository"] == str(repository)
    assert seen(elsewhere, "torchrun", "train.py") == {"code.trouble": f"{elsewhere} is in no git repository"}


def test_git_missing_from_the_path_is_said(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository))
    assert seen(repository) == {"code.trouble": "git is not installed here"}


@pytest.fixture
def hanging_git(tmp_path: Path) -> Path:
    """A folder with a git that says nothing and does not end."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nsleep 600\n")
    (folder / "git").chmod(0o755)
    return folder


def test_a_git_that_hangs_is_given_up_in_time(repository: Path, hanging_git: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{hanging_git}:{os.environ['PATH']}")
    began = time.monotonic()
    assert seen(repository, seconds=0.5) == {"code.trouble": "git: it was not done in time"}
    assert time.monotonic() - began < 30


# --- Python and its packages -----------------------------------------------------------------


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_interpreter_is_the_one_that_the_command_runs_on(tmp_path: Path) -> None:
    mine = program(tmp_path / "venv/bin/python3.11", "#!/bin/sh\n")
    other = program(tmp_path / "usr/python3", "#!/bin/sh\n")
    torchrun = program(tmp_path / "venv/bin/torchrun", f"#!{mine}\nimport sys\n")
    long = program(tmp_path / "venv/bin/accelerate", f"#!/bin/sh\n'''exec' \"{mine}\" \"$0\" \"$@\"\n' '''\n")
    by_env = program(tmp_path / "usr/deepspeed", "#!/usr/bin/env python3\n")
    program(tmp_path / "usr/srun", "#!/bin/sh\n")
    path = str(tmp_path / "usr")
    found = {
        "named": probe.interpreter([str(mine), "train.py"], path),
        "wrapped": probe.interpreter(["srun", "--nodes", "2", str(mine), "-m", "x"], path),
        "shebang": probe.interpreter([str(torchrun), "train.py"], path),
        "long shebang": probe.interpreter([str(long), "launch"], path),
        "env": probe.interpreter([str(by_env)], path),
        "none": probe.interpreter(["srun", "bash", "train.sh"], path),
        "no python": probe.interpreter(["bash"], str(tmp_path)),
    }
    assert found == {
        "named": str(mine),
        "wrapped": str(mine),
        "shebang": str(mine),
        "long shebang": str(mine),
        "env": str(other),
        "none": str(other),
        "no python": None,
    }


def test_packages_are_told_by_the_names_of_their_folders_and_of_two_the_first_on_the_path_counts(tmp_path: Path) -> None:
    for name in (
        "a/torch-2.9.1+cu128.dist-info",
        "a/nvidia_nccl_cu12-2.27.5.dist-info",
        "b/torch-2.8.0.dist-info",
        "b/Flash.Attn-2.8.egg-info",
    ):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "b/apex-0.1-py3.11.egg-info").write_text("a file")
    (tmp_path / "b/mine.egg-info").mkdir()
    (tmp_path / "b/mine.egg-info/PKG-INFO").write_text("Name: mine\nVersion: 7.1\n")
    (tmp_path / "b/torch").mkdir()
    found = probe.installed([str(tmp_path / "a"), str(tmp_path / "none"), str(tmp_path / "b")])
    assert found == {"torch": "2.9.1+cu128", "nvidia-nccl-cu12": "2.27.5", "flash-attn": "2.8", "apex": "0.1", "mine": "7.1"}


def test_the_packages_of_this_very_interpreter_are_those_that_importlib_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import distributions

    found = probe.packages([sys.executable], {"PATH": ""}, time.monotonic() + 20)
    assert found["package.python"].startswith(".".join(map(str, sys.version_info[:3])))
    wanted = {d.name.lower().replace("_", "-"): d.version for d in distributions() if d.name.lower() in ("click", "requests", "pytest")}
    assert wanted == {name: found[f"package.{name}"] for name in wanted} and len(wanted) == 3


def test_nothing_of_the_trainer_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoys = tmp_path / "decoys"
    decoys.mkdir()
    for name in ("sitecustomize", "usercustomize", "json", "site", "os", "torch"):
        (decoys / f"{name}.py").write_text(f"open({str(tmp_path / 'touched')!r}, 'w').close()")
    (decoys / "trainer-3.0.dist-info").mkdir()
    monkeypatch.chdir(decoys)
    monkeypatch.setenv("PYTHONPATH", str(decoys))
    found = probe.packages([sys.executable], os.environ, time.monotonic() + 20)
    assert found["package.trainer"] == "3.0"  # found without looking inside
    assert not (tmp_path / "touched").exists()


def test_an_interpreter_that_fails_is_told_as_such(tmp_path: Path) -> None:
    broken = program(tmp_path / "python3", "#!/bin/sh\necho no libpython >&2\nexit 3\n")
    told = probe.packages([str(broken)], {"PATH": "/usr/bin:/bin"}, time.monotonic() + 20)
    assert told == {"package.trouble": f"{broken}: no libpython"}


# --- drivers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023", "535.129.03"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16)", "570.86.15"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95.05  Release Build", "580.95.05"),
    ],
)
def test_the_nvidia_driver_is_read_from_the_kernel(tmp_path: Path, line: str, version: str) -> None:
    path = tmp_path / "proc/driver/nvidia/version"
    path.parent.mkdir(parents=True)
    path.write_text(f"{line}\nGCC version:  gcc version 12.3.0\n")
    assert probe.drivers(str(tmp_path)) == {"driver.kernel": os.uname().release, "driver.nvidia": version}


def test_a_machine_without_a_driver_tells_none(tmp_path: Path) -> None:
    assert probe.drivers(str(tmp_path)) == {"driver.kernel": os.uname().release}


# --- the environment, and what must never be taken -------------------------------------------


def test_of_the_environment_only_the_allowed_names_are_taken() -> None:
    given = {
        "NCCL_DEBUG": "INFO",
        "CUDA_VISIBLE_DEVICES": "0,1",
        "OMP_NUM_THREADS": "8",
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True",
        "UCX_TLS": "rc",
        "GLOO_SOCKET_IFNAME": "eth0",
        "FI_PROVIDER": "efa",
        "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
        "HF_TOKEN": "hf_abcdefghijklmnopqrstuvwxyz",
        "NCCL_AUTH_TOKEN": "s3cret",
        "MY_SECRET": "s3cret",
        "HOME": "/root",
    }
    told = own_facts(["python", "train.py"], given, "/work", "")
    assert {name for name in told if name.startswith("env.")} == {
        "env.NCCL_DEBUG",
        "env.CUDA_VISIBLE_DEVICES",
        "env.OMP_NUM_THREADS",
        "env.PYTORCH_CUDA_ALLOC_CONF",
        "env.UCX_TLS",
        "env.GLOO_SOCKET_IFNAME",
        "env.FI_PROVIDER",
    }
    assert told["env.PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert (told["code.argv"], told["code.folder"], told["start.resumed_from"]) == ("python train.py", "/work", "the start")


def test_what_the_environment_says_of_the_nodes_is_told_with_the_place() -> None:
    told = own_facts(["x"], {"SLURM_JOB_NODELIST": "gpu-[1-2]", "NNODES": "2"}, "", "")
    assert told == {"code.argv": "x", "start.resumed_from": "the start", "place.SLURM_JOB_NODELIST": "gpu-[1-2]", "place.NNODES": "2"}


@pytest.mark.parametrize(
    ("variables", "image"),
    [
        ({"SUREFOOT_IMAGE": "reg/train@sha256:abc", "CONTAINER_IMAGE": "other"}, "reg/train@sha256:abc"),
        ({"CONTAINER_IMAGE": "reg/train:1.8"}, "reg/train:1.8"),
        ({"APPTAINER_CONTAINER": "/images/train.sif"}, "/images/train.sif"),
    ],
)
def test_the_image_is_taken_from_where_containers_tell_it(variables: dict[str, str], image: str) -> None:
    assert own_facts(["x"], variables, "", "")["code.image"] == image
    assert "code.image" not in own_facts(["x"], {}, "", "")


@pytest.mark.parametrize(
    "words",
    [
        ["--wandb-key", "hunter2"],
        ["--api_key=hunter2"],
        ["--api-key=hunter2 with blanks"],
        ["trainer.logger.apiKey=hunter2"],
        ["--env=HF_TOKEN=hunter2"],
        ["env", "DB_PASSWORD=hunter2", "python"],
        ["sh", "-c", "export TOKEN='hunter2 x'; python train.py --secret hunter2"],
        ["--config", '{"password": "hunter2", "lr": 1}'],
        ["--header", "Authorization: Bearer hunter2"],
        ["s3://me:hunter2@store/data"],
        ["https://hunter2@host/x"],
        ["--x", "sk-hunter2abcdefghijklmnop"],
        ["--x", "ghp_hunter2ABCDEFGHIJKLMNOP12"],
        ["AKIAhunter2".upper() + "ABCDEFGHI"],
        ["--x", "hunter2ABCDEFGHIJKLMNOPQRSTUVWXYZ0123"],
        ["--x", "eyJhunter2abcdefgh.eyJzdWIiOiIx.c2lnbmF0dXJl"],
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_a_secret_on_the_command_line_is_hidden(words: list[str]) -> None:
    told = own_facts(words, {}, "/", "")["code.argv"]
    assert "hunter2" not in told.lower() and HIDDEN in told


def test_what_only_sounds_like_a_secret_stays() -> None:
    words = ["--tokenizer", "meta/Llama-3", "--max-tokens=4096", "--num_tokens", "7", "--eos-token", "</s>", "--monkey", "1", "--author=me"]
    words += ["--lr", "3e-4", "/data/run-2026-11-30/model.safetensors", "tcp://node-1:29500", "a" * 40]
    assert masked_words(words) == words
    assert not is_secret("TOKENIZERS_PARALLELISM")
    assert masked("expandable_segments:True,max_split_size_mb:128") == "expandable_segments:True,max_split_size_mb:128"


def test_facts_are_cut_to_their_limits_packages_first() -> None:
    many = {f"package.p{n}": "1" for n in range(2 * MAX_FACTS)} | {"code.argv": "x" * 10_000, "env.A": "1"}
    kept = capped(many)
    assert len(kept) == MAX_FACTS and len(kept["code.argv"]) == MAX_TEXT and kept["env.A"] == "1"


# --- the launcher ----------------------------------------------------------------------------


def test_the_launcher_sends_what_an_attempt_runs_with(launch, plane, repository, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(repository)
    command = f"until [ -e {tmp_path}/told ]; do sleep 0.05; done"
    started = launch("sh", "-c", command, NCCL_DEBUG="INFO", HF_TOKEN="hf_abcdefghijklmnopqrstuvwxyz", SUREFOOT_IMAGE="train@sha256:1")
    (sent,) = plane.until(lambda p: p.records("surefoot.facts"))
    (tmp_path / "told").touch()
    assert started.wait() == 0
    facts = sent["facts"]
    assert (sent["run"], sent["attempt"], sent["node"]) == ("r", "r-1", "node-a")
    assert facts["code.argv"] == f"sh -c '{command}'" and facts["code.image"] == "train@sha256:1" and facts["env.NCCL_DEBUG"] == "INFO"
    assert facts["code.commit"].endswith("Raise the learning rate") and facts["code.diff"] == "none"
    assert "package.python" in facts and "driver.kernel" in facts and "code.trouble" not in facts
    assert "hf_abc" not in str(sent)


def test_the_command_is_recorded_as_it_was_given_with_the_node_s_place_not_filled_in(launch, plane, tmp_path) -> None:
    plane.nodes = ["node-b", "node-a", "node-c"]
    started = launch("sh", "-c", "echo {node_rank} of {nnodes}; sleep 600", "--nnodes", "3")
    (sent,) = plane.until(lambda p: p.records("surefoot.facts"))
    plane.until(lambda p: p.lines())
    started.process.terminate()
    started.wait()
    assert sent["facts"]["code.argv"] == "sh -c 'echo {node_rank} of {nnodes}; sleep 600' --nnodes 3"
    assert [line.body for line in plane.lines()] == ["1 of 3"]


def test_a_run_whose_ranks_do_not_tell_how_many_they_are_has_one_on_each_node(launch, plane) -> None:
    plane.nodes = ["node-a", "node-b", "node-c"]
    launch("sh", "-c", "sleep 600", "--nnodes", "3")
    (running,) = plane.until(lambda p: p.transitions("running"))
    assert running["ranks"] == 3


def test_a_secret_on_the_command_line_is_not_in_the_run_s_record_either(launch, plane) -> None:
    launch("sh", "-c", "exit 0", "--api-key", "hunter2").wait()
    assert {t["command"] for t in plane.transitions("started", "runs")} == {"sh -c 'exit 0' --api-key (hidden)"}


def test_every_attempt_is_told_with_what_it_resumed_from(launch, plane, script) -> None:
    launch(*script("import time\ntime.sleep(600)"))
    plane.until(lambda p: p.events("rank_started"))
    plane.until(lambda p: p.records("surefoot.facts"))
    plane.ask("restart_run", new_attempt="r-2", launch=2)
    plane.until(lambda p: len(p.records("surefoot.facts")) == 2)
    assert [(r["attempt"], r["facts"]["start.resumed_from"]) for r in plane.records("surefoot.facts")] == [
        ("r-1", "the start"),
        ("r-2", "the start"),
    ]


def test_a_hanging_git_neither_delays_the_command_nor_the_end_of_the_run(launch, plane, hanging_git, tmp_path) -> None:
    """The command stamps its start; the launcher ends before its patience with git (20 s) is over, and sends what it knows all the same."""
    began = time.time()
    started = launch("sh", "-c", f"date +%s.%N > {tmp_path}/stamp", PATH=f"{hanging_git}:{os.environ['PATH']}")
    assert started.wait() == 0
    ended = plane.until(lambda p: p.transitions("ended"))[0]["at"] / 1e6
    assert float((tmp_path / "stamp").read_text()) - began < 15 and ended - began < 15 and time.time() - began < 18
    (sent,) = plane.records("surefoot.facts")
    assert sent["facts"]["code.trouble"] == "the attempt was over before all was read"
    assert sent["facts"]["code.argv"] and sent["facts"]["driver.kernel"]
    commands = [p.read_bytes() for p in Path("/proc").glob("[0-9]*/cmdline") if p.exists()]
    assert not [c for c in commands if str(hanging_git).encode() in c]


def test_where_no_process_can_be_had_what_is_known_is_sent(monkeypatch: pytest.MonkeyPatch, starts: Callable[..., object]) -> None:
    sent: list[tuple[str, dict[str, str]]] = []
    there = threading.Event()

    def send(attempt: str, facts) -> None:
        sent.append((attempt, dict(facts)))
        there.set()

    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    facts = Facts(Tree(), send)
    facts.begin(starts())
    assert there.wait(30)
    facts.close()
    assert sent[0][0] == "r-1" and sent[0][1]["code.argv"] == "true" and "no process" in sent[0][1]["code.trouble"]


@pytest.fixture
def starts(tmp_path: Path) -> Callable[..., object]:
    from exporters.job.attempt import Start

    return lambda: Start("r-1", 1, ["true"], dict(os.environ), tmp_path)
