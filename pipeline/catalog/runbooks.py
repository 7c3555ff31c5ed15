"""Where the runbook of a fault lies."""


def link(fault: str, base: str, console: str) -> str:
    """`<base>/<fault>.md`, or where `base` is "" the page of the console at the address `console`; "" where no fault is named."""
    if not fault:
        return ""
    return f"{base.rstrip('/')}/{fault}.md" if base else f"{console}/runbook?fault={fault}"
