"""Where the console script begins: before anything else of ours is imported, ours is put first."""

from surefoot import own


def main() -> None:
    """Run the command line."""
    own.first()
    from surefoot.cli import main as command_line

    command_line()
