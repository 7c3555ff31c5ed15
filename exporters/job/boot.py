"""Runs as a file of its own between the launcher and the command: `python -I -S boot.py PARENT COMMAND…`.

It asks the kernel to end the command when the launcher dies, gives back the signal dispositions that
Python changed, and becomes the command. A process that has threads cannot safely do this after a fork.
"""

import ctypes
import errno
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
NOT_FOUND = 127
NOT_EXECUTABLE = 126


def main(arguments: list[str]) -> int:
    """Never returns when the command could be started."""
    parent, *command = arguments
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != int(parent):
        return 128 + signal.SIGTERM  # the launcher died before it could be watched
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as e:
        sys.stderr.write(f"surefoot run: cannot run {command[0]!r}: {e.strerror}\n")
        return NOT_FOUND if e.errno == errno.ENOENT else NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
