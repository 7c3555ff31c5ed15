"""Where the runbook of a fault lies."""


def link(fault: str, base: str) -> str:
    """`<base>/<fault>.md`; "" where `base` is "" or no fault is named."""
    return f"{base.rstrip('/')}/{fault}.md" if base and fault else ""
