"""`surefoot report`: what a period was like, on one page."""

import json
import os
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import click

from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.settings import Settings
from surefoot.commands.times import moment, span

_LAST = "7d"


@click.command()
@click.option("--from", "start", help="Where the period begins: 2026-11-23, 2026-11-23T14:05 (UTC), or 36h for so long ago.")
@click.option("--to", "end", help="Where it ends. Default: now.")
@click.option("--last", help=f"Instead: the last so long, as 24h or 7d. Default: {_LAST}.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file instead of printing.")
@click.option("--json", "as_json", is_flag=True, help="The facts as one JSON object instead of the page.")
@click.pass_obj
def report(settings: Settings, start: str | None, end: str | None, last: str | None, out: Path | None, as_json: bool) -> None:
    """Report on a period, on one page: goodput, what it was lost to, incidents, time to repair, and what is not known.

    \b
    Example:  surefoot report --last 24h --out report.md
    """
    from pipeline.store import Store
    from slo.report.facts import gather
    from slo.report.page import page

    now = utcnow()
    since, until = period(start, end, last, now)
    facts = gather(Store.connect(settings), since, until, now, agent_interval=settings.agent.interval)
    text = json.dumps(plain(facts), ensure_ascii=False) + "\n" if as_json else page(facts, settings.console.link)
    if out:
        _write(out, text)
    else:
        click.echo(text, nl=False)


def period(start: str | None, end: str | None, last: str | None, now: datetime) -> tuple[datetime, datetime]:
    """The period that the options name, its end no later than `now`. Raises InputError where they name none."""
    if last and (start or end):
        raise InputError("give either --last or --from and --to, not both")
    if end and not start:
        raise InputError("--to needs --from: say where the period begins")
    until = min(moment(end, now), now) if end else now
    since = moment(start, now) if start else until - span(last or _LAST)
    if since >= until:
        why = "it has not begun yet" if since >= now else "it ends before it begins"
        raise InputError(f"the period from {since:%Y-%m-%d %H:%M} to {until:%Y-%m-%d %H:%M} UTC is empty: {why}")
    return since, until


def plain(value: Any) -> Any:
    """Dataclasses as objects, times as ISO 8601, lengths of time as seconds."""
    if is_dataclass(value):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as e:
        fresh.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {e.strerror}") from e
    click.echo(f"wrote {path}", err=True)
