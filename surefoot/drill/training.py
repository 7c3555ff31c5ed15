"""The training itself: model, data, loop, as a user would write it with DistributedDataParallel and torch.optim.

The same numbers come out of every run, restarted or not: data depends on (seed, step, rank) alone, one thread a
rank, model, optimizer and random state are in the checkpoint, and the operations used have no nondeterministic form
on a CPU.
"""

import json
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from surefoot import StepMonitor
from surefoot.drill import heartbeats, orders, saving
from surefoot.drill.recipe import Recipe
from surefoot.hook import environment

FEATURES, HIDDEN, CLASSES = 64, 256, 10
LEARNING_RATE, MOMENTUM = 0.05, 0.9
LATE, LATE_SHARE = 0.01, 0.05  # how late a rank comes to the all-reduce: seconds, and at most this share of a paced step


@dataclass(slots=True)
class Job:
    """One rank's training."""

    recipe: Recipe
    monitor: StepMonitor
    model: DistributedDataParallel
    optimizer: torch.optim.Optimizer
    teacher: Tensor
    rank: int
    next_step: int = 0

    @property
    def bare(self) -> nn.Module:
        """The model itself: what is saved, and what an eval runs."""
        module: nn.Module = self.model.module
        return module


def begin(recipe: Recipe, monitor: StepMonitor) -> Job:
    """Join the other ranks and make the model, as every rank makes it."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=recipe.group_timeout) if recipe.group_timeout else None)
    torch.manual_seed(recipe.seed)
    net = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Dropout(0.1), nn.Linear(HIDDEN, CLASSES))
    model = DistributedDataParallel(net)
    teacher = torch.randn(FEATURES, CLASSES)
    rank = dist.get_rank()
    torch.manual_seed(recipe.seed * 1000 + rank)  # dropout differs by rank
    return Job(recipe, monitor, model, torch.optim.SGD(model.parameters(), LEARNING_RATE, MOMENTUM), teacher, rank)


def train(job: Job) -> None:
    """From the checkpoint that the launcher names, or from the start, to the recipe's last step."""
    source = job.monitor.resume_from or (job.recipe.resume_newest and saving.newest(saving.folder(job.recipe.out)))
    if source:
        with job.monitor.phase("load_checkpoint"):
            job.next_step = saving.load(source, job.bare, job.optimizer, job.rank) + 1
    if job.recipe.compile_seconds:
        with job.monitor.phase("compile"):
            _work(job, job.recipe.compile_seconds)
    beat = heartbeats.start()
    job.recipe.out.mkdir(parents=True, exist_ok=True)
    with (job.recipe.out / "losses.jsonl").open("a", buffering=1, encoding="utf-8") as losses:
        for number in range(job.next_step, job.recipe.steps):
            loss = step(job, number)
            if job.rank == 0:
                _note(losses, number, loss)
            _between(job, number)
            beat()
    dist.destroy_process_group()


def step(job: Job, number: int) -> float:
    """Train one step; gives the mean loss over all ranks."""
    monitor = job.monitor
    began = time.perf_counter()
    with monitor.step(number) as current:
        with monitor.phase("data"):
            features, labels = _batch(job, number, job.rank)
        with monitor.phase("forward"):
            late = orders.carry_out(job.recipe.out, job.rank, number, features.view(-1))
            loss = nn.functional.cross_entropy(job.model(features), labels)
            _pace(job, number, began)
            time.sleep(late)
        with monitor.phase("backward"):
            torch.autograd.backward(loss)
            norm = nn.utils.get_total_norm(p.grad for p in job.model.parameters() if p.grad is not None)
            _be_late(job, number)
        with monitor.collective("all_reduce"):
            figures = torch.stack([loss.detach(), norm])
            dist.all_reduce(figures)
            figures /= dist.get_world_size()
        with monitor.phase("optimizer"):
            job.optimizer.step()
            job.optimizer.zero_grad()
        current.loss = mean = figures[0].item()
        current.grad_norm = figures[1].item()
        current.samples = job.recipe.batch
        current.flops = 6.0 * job.recipe.batch * sum(p.numel() for p in job.model.parameters())
    return mean


def _pace(job: Job, number: int, began: float) -> None:
    """Sleep off what is left of the recipe's step time, but in an attempt's first step. From the step's own begin, which
    is the ranks' common one, so that none gets into the habit of waiting for another."""
    if number > job.next_step:
        time.sleep(max(0.0, began + job.recipe.step_time - _lateness(job) - time.perf_counter()))


def _be_late(job: Job, number: int) -> None:
    """In a paced training one rank, each in its turn, comes late to the all-reduce, as one always does in a large
    run: the others wait in it, and a drill can hit one there."""
    if number % dist.get_world_size() == job.rank:
        time.sleep(_lateness(job))


def _lateness(job: Job) -> float:
    return min(LATE, job.recipe.step_time * LATE_SHARE)


def _batch(job: Job, number: int, rank: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed((job.recipe.seed << 40) + (number << 12) + rank)
    features = torch.randn(job.recipe.batch, FEATURES, generator=source)
    return features, (features @ job.teacher).argmax(dim=1)


def _between(job: Job, number: int) -> None:
    """What is due after step `number`: eval, checkpoint."""
    recipe, done = job.recipe, number + 1
    if recipe.eval_every and done % recipe.eval_every == 0:
        with job.monitor.phase("eval"):
            _work(job, recipe.eval_seconds)
    if recipe.checkpoint_every and done % recipe.checkpoint_every == 0:
        with job.monitor.phase("checkpoint"):
            saving.save(saving.folder(recipe.out), number, job.bare, job.optimizer, job.monitor)
            time.sleep(recipe.checkpoint_seconds)


@torch.no_grad()
def _work(job: Job, seconds: float) -> None:
    """At least one pass without dropout over data of its own, then more of them at a tenth of a CPU."""
    until = time.perf_counter() + seconds
    job.bare.eval()
    while True:
        began = time.perf_counter()
        job.bare(_batch(job, 0, 4095)[0])
        if (left := until - time.perf_counter()) <= 0:
            break
        time.sleep(min(left, 9 * (time.perf_counter() - began)))
    job.bare.train()


def _note(losses: TextIOWrapper, number: int, loss: float) -> None:
    attempt = environment.identity(os.environ, "", 0).attempt
    losses.write(json.dumps({"step": number, "loss": loss, "attempt": attempt, "at": datetime.now(UTC).isoformat()}) + "\n")
