"""`surefoot change`: records what people and deploy pipelines change, so that incidents can be compared with it."""

import getpass
import json
from datetime import timedelta
from uuid import uuid4

import click

from pipeline.catalog.facts import ChangeKind
from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.settings import Settings
from surefoot.commands.times import moment, span
from surefoot.options import Sentence

_AHEAD = timedelta(seconds=60)  # ingest keeps nothing from further ahead


@click.group()
def change() -> None:
    """Record deploys and driver, configuration and code changes; incidents and runs show those before them.

    \b
    Example:  surefoot change add --kind driver --what "NVIDIA driver 550 -> 570" --node gpu-07
    """


@change.command()
@click.option("--kind", required=True, type=click.Choice([k.value for k in ChangeKind]), help="What sort of thing was changed.")
@click.option("--what", required=True, type=Sentence(), help="What was changed, for the person who looks for a cause.")
@click.option("--node", "nodes", multiple=True, help="A node that it is about; may be given again. Without it: everything.")
@click.option("--at", help="When it took effect: 2026-11-30T14:05 (UTC), 14:05, or 2h for two hours ago. Default: now.")
@click.option("--actor", type=Sentence(), help="Who changed it. Default: you.")
@click.pass_obj
def add(settings: Settings, kind: str, what: str, nodes: tuple[str, ...], at: str | None, actor: str | None) -> None:
    """Record a change. Goes through ingest, so it works from every machine that can reach it.

    \b
    Example:  surefoot change add --kind deploy --what "trainer image 1.8.2" --actor ci
    """
    from exporters.sending.once import deliver
    from pipeline.records import Change
    from pipeline.secrets import ingest_token

    now = utcnow()
    when = moment(at, now) if at else now
    if when > now + _AHEAD:
        raise InputError(f"--at {at} lies ahead: record a change when it is made")
    names = sorted({n.strip().lower() for given in nodes for n in given.split(",") if n.strip()})
    made = Change(id=uuid4().hex, at=when, kind=kind, what=what, actor=actor or _me(), nodes=",".join(names))
    deliver(settings.ingest.endpoint, ingest_token(settings), [("surefoot.change", made)], node=settings.node)
    click.echo(f"recorded: {line(made.kind, made.what, made.nodes, made.actor)} at {when:%Y-%m-%d %H:%M:%S} UTC")


@change.command("list")
@click.option("--last", default="7d", show_default=True, help="How far back: 24h, 7d.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_(settings: Settings, last: str, as_json: bool) -> None:
    """Show the recorded changes, newest first.

    \b
    Example:  surefoot change list --last 24h
    """
    from pipeline.queries.changes_between import changes_between
    from pipeline.store import Store

    now = utcnow()
    found = changes_between(Store.connect(settings), now - span(last), now + _AHEAD)
    for c in found:
        if as_json:
            told = {"id": c.id, "at": c.at.isoformat(), "kind": c.kind, "what": c.what, "actor": c.actor}
            click.echo(json.dumps(told | {"nodes": c.nodes.split(",") if c.nodes else []}, ensure_ascii=False))
        else:
            click.echo(f"{c.at:%Y-%m-%d %H:%M:%S} UTC  {line(c.kind, c.what, c.nodes, c.actor)}")
    if not found and not as_json:
        click.echo(f"no change is recorded in the last {last}; record one: surefoot change add --kind deploy --what ...")


def line(kind: str, what: str, nodes: str, actor: str) -> str:
    """A change in one line."""
    return f"{kind}: {what}" + (f" on {nodes.replace(',', ', ')}" if nodes else "") + f", by {actor}"


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in containers
        return "unknown"
