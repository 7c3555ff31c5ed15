"""`surefoot console`: this process becomes Streamlit."""

import os

from dashboard.serve import command

from pipeline.settings import Settings


def serve(settings: Settings) -> None:
    """Replace this process by Streamlit on the console's pages. Does not return."""
    argv = command(settings)
    os.execv(argv[0], argv)
