"""The highest rate that each link was seen at, kept from agent to agent: a link that has become slower is known by it."""

from collections.abc import Mapping


class Best:
    """The highest rates of one kind of link, bytes a second. `kept` is what earlier agents knew of all kinds."""

    def __init__(self, kind: str, kept: Mapping[str, int]) -> None:
        self._prefix = f"best/{kind}/"
        self._seen = {key: value for key, value in kept.items() if key.startswith(self._prefix)}

    def of(self, link: str, rate: float | None) -> float | None:
        """The highest of `link` so far, now that it runs at `rate` (None: it does not run, or nobody knows)."""
        key = self._prefix + link
        if rate is not None and rate > self._seen.get(key, 0):
            self._seen[key] = int(rate)
        return float(self._seen[key]) if key in self._seen else None

    def kept(self) -> Mapping[str, int]:
        """What the next agent is to know."""
        return dict(self._seen)
