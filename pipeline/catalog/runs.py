"""What may name a run, and what its launchers say of themselves, once: who starts a run and who is asked about it read it alike."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from pipeline.errors import InputError

MOST_NODES: Final = 100_000
SLACK: Final = timedelta(seconds=2)  # between the clocks of ingest, which hears launchers ask, and of the leader, which issues attempts
ASKS: Final = 4.0  # seconds: who waits asks about every second, and one that is gone must not be counted on
_RUN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")
_NODE: Final = re.compile(r"[A-Za-z0-9_:][A-Za-z0-9_.:-]*")  # what stands in lists, in names of files and in addresses of pages
_NODES: Final = re.compile(r"(\d{1,6})(?::(\d{1,6}))?", re.ASCII)

STARTING, RUNNING, STOPPING, WAITING = "starting", "running", "stopping", "waiting"
READY: Final = "ready"  # the attempt is stopped here, and the next one may begin
DONE: Final = "done"  # the command ended well here, not yet on the node that speaks for the run
FINISHING: Final = "finishing"  # it ended well on the node that speaks for the run; the other nodes' ends are awaited
GONE: Final = "gone"  # the launcher's last word: it ends
WELL: Final = "well"  # stands for its ranks in the last word of a launcher whose command had ended well
STATES: Final = frozenset({STARTING, RUNNING, STOPPING, WAITING, READY, DONE, FINISHING, GONE})

ENDED_WELL: Final = "the command ended well"
_HERE: Final = f"{ENDED_WELL} here; "


def ended_here(missing: int, others: int) -> str:
    """Why a run is over whose command ended well on the node that speaks for it; of `others` nodes `missing` did not say so."""
    return f"{_HERE}{missing} of {others} other nodes did not say so" if missing else ENDED_WELL


UNHEARD: Final = f"{_HERE}without the control plane nobody knows of the other nodes"


def ended_in_part(reason: str) -> bool:
    """Whether a run ended well for this reason, and not all its nodes are known to have done so."""
    return reason.startswith(_HERE)


def check_run(run: str) -> None:
    """Raises InputError for a run id that cannot be part of a file's name or does not fit into a ring's header."""
    if not _RUN.fullmatch(run):
        raise InputError(f"run id {run!r} must be 1 to 60 letters, digits, dots, dashes or underscores, and begin with a letter or digit")


def last_ranks(state: str) -> str:
    """What a launcher that was in `state` says of its ranks with its last word."""
    return WELL if state in (DONE, FINISHING) else ""


def ended_well(state: str, ranks: str) -> bool:
    """Whether a launcher has said, in what it said last, that its attempt's command ended well on its node."""
    return state in (DONE, FINISHING) or (state == GONE and ranks == WELL)


def unfit_node(node: str) -> str:
    """Why `node` cannot be a node's name, and what to do; "" where it can."""
    if _NODE.fullmatch(node):
        return ""
    return "must be letters, digits, dots, dashes, underscores or colons, and begin with no dot or dash: give it one (SUREFOOT_NODE)"


@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes a run takes: it starts with as many as come of at most `most`, and goes on with no fewer than `least`."""

    least: int = 1
    most: int = 1

    @property
    def several(self) -> bool:
        """Whether launchers have to find together."""
        return self.most > 1

    def __str__(self) -> str:
        return f"{self.least}:{self.most}" if self.least != self.most else str(self.most) if self.several else ""


def parse_nodes(text: str) -> Nodes:
    """The count in "4" or "2:4"; one node in "". Raises InputError for anything else."""
    if not text:
        return Nodes()
    found = _NODES.fullmatch(text)
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most <= MOST_NODES:
        raise InputError(f"nodes {text!r} must be a number such as 4, or least and most such as 2:4, from 1 to {MOST_NODES}")
    return Nodes(least, most)


@dataclass(frozen=True, slots=True)
class Others:
    """How many other launchers of an attempt said that its command ended well there, and how many go on with it."""

    finished: int
    unfinished: int


def meant(node: str, asking_since: datetime, nodes: Collection[str], issued_at: datetime) -> bool:
    """Whether an attempt for `nodes` was issued for the launcher on `node`: it asked already. One started later is a spare."""
    return node in nodes and asking_since <= issued_at + SLACK
