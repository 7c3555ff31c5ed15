"""The ring's layout, phase names and environment names: what the training process and the agent agree on.

Standard library only, and none of Surefoot's other packages: this runs inside the trainer. A test holds
PHASES equal to the catalogue.

A ring file is HEADER_SIZE bytes of header, then `capacity` slots of SLOT_SIZE bytes. All numbers are
little-endian. Times are nanoseconds since 1970, computed in the trainer from its monotonic clock and one
reading of the wall clock, so that they never go back within an attempt.
"""

import struct
import zlib
from mmap import mmap
from typing import Final, NamedTuple

Ring = bytes | bytearray | memoryview | mmap  # a whole ring file, mapped or read

PHASES: Final = (
    "init",
    "load_checkpoint",
    "compile",
    "data",
    "forward",
    "backward",
    "optimizer",
    "comm_wait",
    "checkpoint",
    "eval",
    "rollout",
    "reward",
    "reference",
    "weight_sync",
)

ENV_RUN: Final = "SUREFOOT_RUN_ID"
ENV_ATTEMPT: Final = "SUREFOOT_ATTEMPT_ID"
ENV_RING_DIR: Final = "SUREFOOT_RING_DIR"
ENV_NODE: Final = "SUREFOOT_NODE"
ENV_RESUME_FROM: Final = "SUREFOOT_RESUME_FROM"
ENV_CHECKPOINTS: Final = "SUREFOOT_CHECKPOINT_DIR"
ENV_DISABLED: Final = "SUREFOOT_MONITOR_OFF"  # any text: StepMonitor does nothing
ENVIRONMENT: Final = (ENV_RUN, ENV_ATTEMPT, ENV_RING_DIR, ENV_RESUME_FROM, ENV_CHECKPOINTS, ENV_DISABLED)

RING_SUFFIX: Final = ".ring"  # file name: <attempt>.<rank>.ring
MARK_NAME: Final = "SUREFOOT_COMPLETE.json"  # completeness mark inside a checkpoint's folder
MAGIC: Final = b"SUREFOOT"
VERSION: Final = 1
HEADER_SIZE: Final = 4096
SLOT_SIZE: Final = 256
CAPACITY: Final = 1024

# Header: magic, version, header size, slot size, capacity, pid, rank, local rank, world size, created ns,
# then run, attempt and node (UTF-8, padded with zero bytes).
HEADER: Final = struct.Struct("<8sIIIIIIIIQ64s96s64s")
WRITTEN_OFFSET: Final = 512  # u64: records written so far; slot of record n is n % capacity
CLOSED_OFFSET: Final = 520  # u64: ns at which the monitor was closed in good order, 0 while open

# The live state, for a stop inside a step: aligned 64-bit words, each written by one store, `since` first. Times are
# of the trainer's monotonic clock; BASE is that clock at `created`. A reader that finds a word of the
# next moment beside one of this moment is corrected when it looks again.
STEP_WORD_OFFSET: Final = 528  # step + 1, in progress or the last one; 0: none yet
DONE_WORD_OFFSET: Final = 536  # step + 1, completed; 0: none yet
SINCE_WORD_OFFSET: Final = 544  # ns: when a step or phase last began or ended
PHASE_WORD_OFFSET: Final = 552  # index of the phase, or NO_PHASE between phases
BASE_WORD_OFFSET: Final = 560  # ns
NO_PHASE: Final = 31

# Live cell at LIVE_OFFSET, written when a collective begins: sequence, step + 1, completed + 1 (0: none yet),
# since ns (monotonic), phase, collective (UTF-8, cut), then the crc32 of all before it. It names the
# collective that the rank is in while its `since` is that of the words.
LIVE_OFFSET: Final = 1024
LIVE: Final = struct.Struct("<QQQQI28s")
CRC: Final = struct.Struct("<I")

# A slot: body, then crc32 of the body. The body begins with sequence + 1 (0: never written) and the record's kind.
KIND_STEP: Final = 1
KIND_PHASE: Final = 2
KIND_CHECKPOINT: Final = 3
SLOT_HEAD: Final = struct.Struct("<QII")  # sequence + 1, kind, flags

# kind 1, a step. Flags say which of the figures below are present, bit i for FIGURES[i].
# head, step, started ns, ended ns, then the figures, then 14 phases (u64 ns, 0: not entered).
FIGURES: Final = ("loss", "grad_norm", "flops", "tokens", "samples")
STEP: Final = struct.Struct("<QIIQQQdddQQ14Q")
# kind 2, a phase outside any step; flags hold its index. head, step + 1 it follows, started ns, ended ns
PHASE_RECORD: Final = struct.Struct("<QIIQQQ")
# kind 3, a checkpoint completed. head, step, at ns, bytes, path (UTF-8, cut)
CHECKPOINT_RECORD: Final = struct.Struct("<QIIQQQ192s")
CRC_OFFSET: Final = SLOT_SIZE - CRC.size


class LiveCell(NamedTuple):
    """What a rank is doing. `since` is ns since 1970; a step is None where there was none yet."""

    step: int | None  # in progress, or the last one
    completed: int | None
    since: int  # when the rank last began or ended a step or phase
    phase: str  # "" between phases
    collective: str  # "" outside a collective


def read_live(ring: Ring) -> LiveCell | None:
    """The live state in `ring`; None while it is being written: look again."""
    since = _word(ring, SINCE_WORD_OFFSET)
    phase, step, done = (_word(ring, at) for at in (PHASE_WORD_OFFSET, STEP_WORD_OFFSET, DONE_WORD_OFFSET))
    if since != _word(ring, SINCE_WORD_OFFSET) or (phase >= len(PHASES) and phase != NO_PHASE):
        return None
    created: int = HEADER.unpack_from(ring)[9]
    return LiveCell(
        step=step - 1 if step else None,
        completed=done - 1 if done else None,
        since=created + since - _word(ring, BASE_WORD_OFFSET),
        phase="" if phase == NO_PHASE else PHASES[phase],
        collective="" if phase == NO_PHASE else _collective(ring, since),
    )


def _word(ring: Ring, offset: int) -> int:
    return int.from_bytes(ring[offset : offset + 8], "little")


def _collective(ring: Ring, since: int) -> str:
    cell = bytes(ring[LIVE_OFFSET : LIVE_OFFSET + LIVE.size + CRC.size])
    *_, began, _phase, name = LIVE.unpack_from(cell)
    fits = CRC.unpack_from(cell, LIVE.size)[0] == zlib.crc32(cell[: LIVE.size])
    return name.rstrip(b"\0").decode("utf-8", "ignore") if fits and began == since else ""
