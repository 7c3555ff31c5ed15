"""The training itself: model, data, update, loop. The same numbers come out of every run, restarted or not.

What makes that so: data depends on (seed, step, rank) alone, one thread a rank, the random state is in the
checkpoint, and the operations used have no nondeterministic form on a CPU. `torch.optim`,
DistributedDataParallel and `use_deterministic_algorithms` each import PyTorch's compiler, more than a second
of every start, so the update and the gradient's all-reduce are written out.
"""

import json
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper

import torch
import torch.distributed as dist
from torch import Tensor, nn

from surefoot import StepMonitor
from surefoot.drill import saving
from surefoot.drill.trainer import Plan
from surefoot.hook import environment

FEATURES, HIDDEN, CLASSES, BATCH = 64, 256, 10, 32
LEARNING_RATE, MOMENTUM = 0.05, 0.9


@dataclass(slots=True)
class Job:
    """One rank's training. `flat` is the gradient of all parameters and, last, the loss."""

    plan: Plan
    monitor: StepMonitor
    model: nn.Sequential
    momentum: list[Tensor]
    teacher: Tensor
    flat: Tensor
    rank: int
    next_step: int = 0
    busy: float = 0.0  # seconds of the last step, less its sleep


def begin(plan: Plan, monitor: StepMonitor) -> Job:
    """Join the other ranks and make the model, as every rank makes it."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(plan.seed)
    model = nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.Tanh(), nn.Dropout(0.1), nn.Linear(HIDDEN, CLASSES))
    teacher = torch.randn(FEATURES, CLASSES)
    rank = dist.get_rank()
    torch.manual_seed(plan.seed * 1000 + rank)  # dropout differs by rank
    size = sum(p.numel() for p in model.parameters())
    return Job(plan, monitor, model, [torch.zeros_like(p) for p in model.parameters()], teacher, torch.zeros(size + 1), rank)


def train(job: Job) -> None:
    """From the checkpoint that the launcher names, or from the start, to the plan's last step."""
    if job.monitor.resume_from:
        with job.monitor.phase("load_checkpoint"):
            job.next_step = saving.load(job.monitor.resume_from, job.model, job.momentum, job.rank) + 1
    if job.plan.compile_seconds:
        with job.monitor.phase("compile"):
            _work(job, job.plan.compile_seconds)
    job.plan.out.mkdir(parents=True, exist_ok=True)
    with (job.plan.out / "losses.jsonl").open("a", buffering=1, encoding="utf-8") as losses:
        for step in range(job.next_step, job.plan.steps):
            loss = _step(job, step)
            if job.rank == 0:
                _note(losses, step, loss)
            _between(job, step)
    dist.destroy_process_group()


def _step(job: Job, number: int) -> float:
    """One step; gives the mean loss over all ranks."""
    monitor = job.monitor
    began = time.perf_counter()
    with monitor.step(number) as step:
        with monitor.phase("data"):
            features, labels = _batch(job, number, job.rank)
        with monitor.phase("forward"):
            loss = nn.functional.cross_entropy(job.model(features), labels)
            slept = max(0.0, job.plan.step_time - job.busy) if job.busy else 0.0
            time.sleep(slept)
        with monitor.phase("backward"):
            torch.autograd.backward(loss)
            gradients = [p.grad.flatten() for p in job.model.parameters() if p.grad is not None]
            torch.cat([*gradients, loss.detach().reshape(1)], out=job.flat)
        with monitor.collective("all_reduce"):
            dist.all_reduce(job.flat)
            job.flat /= dist.get_world_size()
        with monitor.phase("optimizer"):
            _update(job)
        step.loss = mean = job.flat[-1].item()
        step.grad_norm = job.flat[:-1].norm().item()
        step.samples = BATCH
        step.flops = 6.0 * BATCH * (job.flat.numel() - 1)
    job.busy = time.perf_counter() - began - slept
    return mean


def _batch(job: Job, step: int, rank: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed((job.plan.seed << 40) + (step << 12) + rank)
    features = torch.randn(BATCH, FEATURES, generator=source)
    return features, (features @ job.teacher).argmax(dim=1)


@torch.no_grad()
def _update(job: Job) -> None:
    """SGD with momentum, from the averaged gradient."""
    at = 0
    for parameter, momentum in zip(job.model.parameters(), job.momentum, strict=True):
        gradient = job.flat[at : at + parameter.numel()].view_as(parameter)
        momentum.mul_(MOMENTUM).add_(gradient)
        parameter.add_(momentum, alpha=-LEARNING_RATE)
        parameter.grad = None
        at += parameter.numel()


def _between(job: Job, step: int) -> None:
    """What is due after `step`: eval, checkpoint."""
    plan, done = job.plan, step + 1
    if plan.eval_every and done % plan.eval_every == 0:
        with job.monitor.phase("eval"):
            _work(job, plan.eval_seconds)
    if plan.checkpoint_every and done % plan.checkpoint_every == 0:
        with job.monitor.phase("checkpoint"):
            saving.save(saving.folder(plan.out), step, job.model, job.momentum, job.monitor)
            time.sleep(plan.checkpoint_seconds)


@torch.no_grad()
def _work(job: Job, seconds: float) -> None:
    """At least one pass without dropout over data of its own, then more of them at a tenth of a CPU."""
    until = time.perf_counter() + seconds
    job.model.eval()
    while True:
        began = time.perf_counter()
        job.model(_batch(job, 0, 4095)[0])
        if (left := until - time.perf_counter()) <= 0:
            break
        time.sleep(min(left, 9 * (time.perf_counter() - began)))
    job.model.train()


def _note(losses: TextIOWrapper, step: int, loss: float) -> None:
    attempt = environment.identity(os.environ, "", 0).attempt
    losses.write(json.dumps({"step": step, "loss": loss, "attempt": attempt, "at": datetime.now(UTC).isoformat()}) + "\n")
