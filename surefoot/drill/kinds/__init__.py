"""The kinds of drills, a line each for `surefoot drill --help`.

What a kind does is in the file of its name, and all of them stand in `registry.py`.
"""

from typing import Final

LINES: Final = {
    "kill": "SIGKILL to one rank.",
    "hang": "SIGSTOP to one rank, outside or inside a collective.",
    "node-loss": "Cut a node's cable and kill all on it, with a spare node waiting (needs root).",
    "disk-full": "Fill the file system that the checkpoints lie on (needs root).",
    "read-only": "Remount the file system of the checkpoints read-only (needs root).",
    "oom": "Let one rank outgrow the job's control group, so that the kernel kills it (needs root).",
    "slow": "Hold up one rank's compute in every step.",
    "nan": "Feed one rank a batch that makes the loss NaN.",
}

OF_A_NODE: Final = ("disk-full", "read-only")  # hit no one rank
SPREAD: Final = ("kill", "hang", "node-loss")  # can be done to a training over several nodes
COMPARED: Final = ("kill", "hang")  # can be done to a training that nobody watches, too


def told() -> str:
    """The lines, side by side."""
    width = max(map(len, LINES))
    return "\n".join(f"  {name:<{width}}  {line}" for name, line in LINES.items())
