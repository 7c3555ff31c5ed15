"""Surefoot, seen from a training script: `from surefoot import StepMonitor`. Standard library only."""

TYPE_CHECKING = False  # as typing's, whose import would take longer than all the rest here
if TYPE_CHECKING:
    from surefoot.hook.monitor import StepMonitor

__all__ = ["StepMonitor"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The monitor when it is asked for: a command of ours is up, and deaf to Ctrl-C no more, without it."""
    if name == "StepMonitor":
        from surefoot.hook.monitor import StepMonitor

        return StepMonitor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
