"""What follows for a launcher: another attempt, or the end."""

from dataclasses import dataclass

from exporters.job.control import Issued, Request


@dataclass(frozen=True, slots=True)
class Next:
    """The attempt that follows, and the request that asked for it (None: local policy)."""

    issued: Issued
    request: Request | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The run is over, or goes on without us."""

    code: int  # as subprocess gives it: negative for a signal
    reason: str
    asked: bool = False  # a person or a scheduler ended it

    @property
    def state(self) -> str:
        """What the run is now."""
        return "stopped" if self.asked else "failed" if self.code else "finished"
