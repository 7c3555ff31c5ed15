"""`surefoot console`: this process becomes Streamlit."""

import os

from dashboard.serve import command
from pipeline.settings import Settings
from surefoot.own import ROOT


def serve(settings: Settings) -> None:
    """Replace this process by Streamlit on the console's pages. Does not return."""
    argv = command(settings)
    if others := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join((ROOT, others))  # ours first, there too
    os.execv(argv[0], argv)
