"""What the next call to the control plane says of this launcher."""

from dataclasses import dataclass, field

from exporters.job.control import Situation
from pipeline.clock import monotonic


@dataclass(slots=True)
class Standing:
    """`nodes` and `address` are said with every call, `situation` is what it says now."""

    nodes: str
    address: str
    minted_at: float | None = None  # (monotonic) when it began its attempt by itself, until the leader has adopted that
    situation: Situation = field(default_factory=lambda: Situation("", 0, "", ""))

    def say(self, state: str, attempt: str, launch: int, resume: str = "", ranks: str = "") -> None:
        """From now on; who goes on waiting, with no attempt, has waited since it first said so."""
        waits_since, before = self.minted_at if attempt else monotonic(), self.situation
        if not attempt and not before.attempt and before.state == state:
            waits_since = before.waits_since
        self.situation = Situation(attempt, launch, state, ranks, self.nodes, self.address, resume, waits_since)
