"""`surefoot console`: this process becomes Streamlit."""

import os
import signal

from dashboard.serve import command
from pipeline.settings import Settings
from surefoot.own import ROOT


def serve(settings: Settings) -> None:
    """Replace this process by Streamlit on the console's pages. Does not return."""
    argv = command(settings)
    argv.insert(argv.index("-m") + 1, "surefoot.quietly")
    if others := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join((ROOT, others))  # ours first, there too
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until the new program can end quietly
    os.execv(argv[0], argv)
