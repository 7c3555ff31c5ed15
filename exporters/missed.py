"""Devices that were there and are not any more: what the kernel no longer lists says nothing of itself, so its collector has to. Pure.

What is kept is words to numbers: "gone/KIND/NAME<US>PLACE" is the hour (since 1970) in which the device was last listed, 0 once it is
given up.
"""

from collections.abc import Collection, Mapping
from typing import Final

FORGET: Final = 24  # hours for which a device that is gone is missed: after that it was taken out
_HOUR: Final = 3600.0
_APART: Final = "\x1f"


class Missed:
    """The devices of one kind that should be there, by name. `kept` is what earlier agents knew of all kinds."""

    def __init__(self, kind: str, kept: Mapping[str, int]) -> None:
        self._prefix = f"gone/{kind}/"
        known = {key.removeprefix(self._prefix): hour for key, hour in kept.items() if key.startswith(self._prefix)}
        self._seen = {(name, place): hour for key, hour in known.items() if hour for name, _, place in [key.partition(_APART)]}
        self._given_up: set[tuple[str, str]] = set()

    def missing(self, listed: Mapping[str, str], used: Collection[str], now: float) -> dict[str, str]:
        """The devices that should be listed at `now` (seconds since 1970) and are not, each with its place.

        `listed` is the place of each that is ("" where it has none that is its own), `used` are those of them whose loss would matter:
        from then on they are missed. A device is known by its place, so that another name is no loss; where another device has its name
        by now, it is told of under its place.
        """
        hour = int(now // _HOUR)
        there = set(listed.items())
        places = {place for place in listed.values() if place}
        for device in [one for one in self._seen if one not in there]:
            if device[1] in places or hour - self._seen[device] > FORGET:
                del self._seen[device]
                self._given_up.add(device)
        self._seen |= {device: hour for device in there if device in self._seen or device[0] in used}
        gone = [device for device in self._seen if device not in there]
        return {(name if name not in listed else place): place for name, place in gone if name not in listed or place}

    def kept(self) -> dict[str, int]:
        """What the next agent is to know."""
        kept = {self._key(device): 0 for device in self._given_up}
        return kept | {self._key(device): hour for device, hour in self._seen.items()}

    def _key(self, device: tuple[str, str]) -> str:
        return f"{self._prefix}{device[0]}{_APART}{device[1]}"
