"""Where the console script begins: before anything else of ours is imported, ours is put first, and Ctrl-C made quiet."""

import os
import signal


def main() -> None:
    """Run the command line."""
    interrupt_quietly()
    from surefoot import own

    own.first()
    from surefoot.cli import main as command_line

    command_line()


def interrupt_quietly() -> None:
    """Let Ctrl-C end the process at once, until a command that has something to clean up takes the signal over.

    Python's own way, an exception, lands in the middle of an import and prints where.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, _: os._exit(128 + number))
