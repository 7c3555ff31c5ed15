"""Stretches of time of ten seconds and more in the words of people: the same in the console, in pages and in the report."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def long_span(seconds: float) -> str:
    """`41 s`, `3 min 20 s`, `2 h 05 min`, `3 d 4 h`."""
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02d} s"
    if whole < _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02d} min"
    return f"{whole // _DAY} d {whole % _DAY // _HOUR} h"
