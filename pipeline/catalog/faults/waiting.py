"""The faults that nothing can see yet: their names stand already, with what they wait for.

Once a detector or a rule shows one, it moves to `faults.py` under the same name.
"""

from typing import Final

from pipeline.catalog.fault import Fault
from pipeline.catalog.layers import Layer, Severity

_Row = tuple[str, Severity, float | None, str, str]  # name, severity, seen within (seconds; None: at the event), what it is, first action

_CRITICAL, _ERROR, _WARNING, _INFO = Severity.CRITICAL, Severity.ERROR, Severity.WARNING, Severity.INFO


def _wait(what: str, layer: Layer, *rows: _Row) -> tuple[Fault, ...]:
    return tuple(Fault(name, layer, severity, seen, None, summary, advice, what) for name, severity, seen, summary, advice in rows)


WAITING: Final = (
    *_wait(
        "the slowdown detectors",
        Layer.COMPUTE,
        ("gpu_slow", _ERROR, 180, "A GPU computes slower than its peers", "evidence; swap in spare; verify"),
    ),
    *_wait(
        "the loss detectors",
        Layer.COMPUTE,
        ("silent_data_corruption", _CRITICAL, 300, "A device computes wrong values", "roll back; isolate suspects; replay"),
    ),
    *_wait(
        "the comparison of a switch's ports",
        Layer.COMMUNICATION,
        ("switch_fault", _CRITICAL, 60, "A switch fails", "exclude its nodes or page network"),
        ("rail_imbalance", _WARNING, 60, "One rail is slower than its peers", "evidence"),
    ),
    *_wait(
        "the reading of training logs",
        Layer.COMMUNICATION,
        ("nccl_error", _CRITICAL, None, "A collective failed with an error", "restart; exclude if it repeats on a pair"),
    ),
    *_wait(
        "the reading of training logs",
        Layer.FRAMEWORK,
        ("rendezvous_failure", _CRITICAL, None, "The ranks did not find each other", "restart once; name the missing node"),
        ("watchdog_timeout", _ERROR, None, "A watchdog ended the ranks", "find the origin"),
        ("loader_worker_death", _ERROR, None, "A data loader's worker died", "restart; page owner"),
    ),
    *_wait(
        "the reading of training logs",
        Layer.WORKLOAD,
        ("gpu_memory_exhausted", _ERROR, None, "A GPU's memory is used up", "restart once; page owner"),
    ),
    *_wait(
        "the slowdown detectors",
        Layer.STORAGE,
        ("loader_starvation", _WARNING, 60, "The training waits for data", "locate mount or dataset"),
        ("storage_slow", _WARNING, 60, "A file system is slower than it was", "locate server; page storage"),
        ("checkpoint_slow", _WARNING, None, "Saving a checkpoint takes longer than it did", "evidence"),
    ),
    *_wait(
        "the checkpoint detectors",
        Layer.STORAGE,
        ("checkpoint_incomplete", _ERROR, None, "A checkpoint is not complete", "use the last complete one"),
        ("checkpoint_failed", _ERROR, None, "A checkpoint could not be saved", "use the last complete one; page owner"),
    ),
    *_wait(
        "the loss detectors",
        Layer.WORKLOAD,
        ("loss_nan", _CRITICAL, None, "The loss is not a number", "collect; roll back; check for corruption"),
        ("loss_spike", _WARNING, None, "The loss leaves its band and stays out", "watch; roll back and skip data by policy"),
        ("divergence", _ERROR, 300, "The training diverges", "page owner"),
    ),
    *_wait(
        "the slowdown detectors",
        Layer.WORKLOAD,
        ("gc_or_compile_stall", _INFO, 60, "Garbage collection or compiling holds up steps", "advise"),
        ("mfu_decline", _WARNING, 180, "Steps got slower with no other finding", "triage: hardware, data, sequence, stage, comm"),
        ("straggler_stage", _INFO, 180, "One pipeline stage is always late", "advise rebalance"),
        ("straggler_sequence", _INFO, 180, "Step time follows the length of sequences", "advise"),
        ("expert_imbalance", _INFO, 180, "Some experts get too many tokens", "advise"),
    ),
    *_wait(
        "the reinforcement-learning detectors",
        Layer.WORKLOAD,
        ("rollout_long_tail", _INFO, None, "A few rollouts hold up the batch", "advise; cap by policy"),
        ("env_failure", _WARNING, None, "An environment fails", "retry elsewhere; page owner"),
        ("tool_timeout", _WARNING, None, "A tool does not answer in time", "advise; page owner"),
        ("reward_service_down", _ERROR, 30, "The reward service fails", "page owner"),
        ("rl_collapse", _ERROR, None, "The policy collapses", "page owner"),
    ),
    *_wait(
        "the reinforcement-learning detectors",
        Layer.FRAMEWORK,
        ("rollout_engine_down", _CRITICAL, 10, "A rollout engine is gone", "restart engine"),
    ),
    *_wait(
        "the reinforcement-learning detectors",
        Layer.COMMUNICATION,
        ("weight_sync_stall", _CRITICAL, 60, "Sending the weights takes too long", "stacks; restart"),
    ),
    *_wait(
        "the comparison of a rack's nodes",
        Layer.FACILITY,
        ("facility_power_cooling", _CRITICAL, 30, "Many nodes of a rack lose power or overheat", "page facility; move runs"),
    ),
    *_wait(
        "Surefoot's watch over itself",
        Layer.UNKNOWN,
        ("platform_blind", _CRITICAL, 30, "Surefoot does not see", "dead-man's switch"),
    ),
)
