"""/dev/kmsg read record by record."""

import os
import stat
from collections import deque
from pathlib import Path

import pytest

from exporters.sources.kernel.kmsg import MOST, Kmsg


class Kernel:
    """Answers reads as the device does: one record each, the next one's number after what was overwritten, and "not now" at the end."""

    def __init__(self) -> None:
        self.answers: deque[bytes | OSError] = deque()

    def log(self, *numbers: int) -> None:
        self.answers.extend(f"4,{number},1,-;x\n".encode() for number in numbers)

    def read(self, _: int, __: int) -> bytes:
        answer = self.answers.popleft() if self.answers else BlockingIOError()
        if isinstance(answer, OSError):
            raise answer
        return answer


DEVICE = Path("/dev/null")  # a character device that can be opened anywhere


def test_what_was_overwritten_is_counted_by_the_numbers_and_reading_goes_on() -> None:
    kernel = Kernel()
    kernel.log(4, 5)
    log = Kmsg(DEVICE, None, kernel.read)
    assert log.after == 5 and not log.saved
    kernel.log(6)
    kernel.answers.append(BrokenPipeError())
    kernel.log(17)
    read = log.read()
    assert ([r.sequence for r in read.records], read.lost, read.all) == ([6, 17], 10, True)
    log.close()


def test_what_was_read_before_is_left_out_and_what_is_no_record_is_counted() -> None:
    kernel = Kernel()
    kernel.log(*range(5))
    kernel.answers.append(b"nonsense")
    log = Kmsg(DEVICE, 3, kernel.read)
    read = log.read()
    assert ([r.sequence for r in read.records], read.lost, read.malformed) == ([4], 0, 1)
    log.close()


def test_a_call_reads_no_more_than_its_limit() -> None:
    kernel = Kernel()
    kernel.log(*range(MOST + 1))
    log = Kmsg(DEVICE, -1, kernel.read)
    first, second = log.read(), log.read()
    assert (len(first.records), first.all) == (MOST, False)
    assert ([r.sequence for r in second.records], second.all) == ([MOST], True)
    log.close()


def test_the_device_is_opened_so_that_no_read_waits() -> None:
    if not os.access("/dev/kmsg", os.R_OK) or not stat.S_ISCHR(os.stat("/dev/kmsg").st_mode):
        pytest.skip("may not read the kernel's log here")
    log = Kmsg(Path("/dev/kmsg"), None)
    assert not os.get_blocking(log._fd)
    log.read()
    log.close()
