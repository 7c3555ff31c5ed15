"""`python -m surefoot.quietly MODULE ARGUMENT…`: the module as `python -m` runs it, but an early Ctrl-C ends it without a traceback."""

import runpy
import signal
import sys

from surefoot.entry import interrupt_quietly

if __name__ == "__main__":
    interrupt_quietly()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # which `surefoot console` blocked
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
