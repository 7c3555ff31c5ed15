"""`surefoot silence`, `maintenance` and `actions`: what Surefoot leaves undone for a while. Each module is loaded when it is needed."""

import json
import sys
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

import click

from pipeline.clock import utcnow
from pipeline.errors import InputError
from pipeline.settings import Settings
from surefoot.options import Sentence

if TYPE_CHECKING:
    from pipeline.hold_records import HoldTransition
    from pipeline.store import Store

    Since = Callable[[Store, datetime], Sequence[HoldTransition]]

SHOWN = timedelta(days=1)  # what ended longer ago is not listed
UNHEARD = "asked for, but no leader has answered within 5 s: is `surefoot jobs` running? Once it runs, it carries this out within the hour"

_lasts = click.option("--for", "lasts", metavar="SPAN", help="How long: 30m, 2h, 1h30m, 2d.")
_until = click.option("--until", metavar="TIME", help="Until when: 2026-12-01T08:00Z.")
_reason = click.option("--reason", required=True, type=Sentence(), help="Why; it stands in pages, timeline and console.")
_why = click.option("--reason", default="", type=Sentence(empty=True), help="Why.")
_owner = click.option("--owner", type=Sentence(), help="Whose it is. Default: you.")
_json = click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
_all = click.option("--all", "everything", is_flag=True, help="Also those that ended within the last day.")


@click.group()
def silence() -> None:
    """Hold back pages for a while. Detection, incidents and actions go on.

    What is still open when the silence ends pages then; what opened and closed inside it never does.

    \b
    Example:  surefoot silence add node=node-7 --for 2h --reason "rack move"
    """


@silence.command("add")
@click.argument("matcher")
@_lasts
@_until
@_reason
@_owner
@click.pass_obj
def silence_add(settings: Settings, matcher: str, lasts: str | None, until: str | None, reason: str, owner: str | None) -> None:
    """Silence what MATCHER is about: KEY=VALUE[,KEY=VALUE] of node, device, run, rank, fault, layer, severity.

    \b
    Example:  surefoot silence add run=llama-8b,rank=3 --until 2026-12-01T08:00Z --reason "known slow rank"
    """
    from alerts.silences import SILENCE

    _begin(settings, SILENCE, matcher, None, lasts, until, reason, owner)


@silence.command("list")
@_all
@_json
@click.pass_obj
def silence_list(settings: Settings, everything: bool, as_json: bool) -> None:
    """List the silences.

    \b
    Example:  surefoot silence list
    """
    _list(settings, _silences(), everything=everything, as_json=as_json)


@silence.command("end")
@click.argument("ident", metavar="ID")
@_why
@click.pass_obj
def silence_end(settings: Settings, ident: str, reason: str) -> None:
    """End a silence now.

    \b
    Example:  surefoot silence end 5f0c12ab34cd
    """
    from alerts.silences import END_SILENCE

    _end(settings, END_SILENCE, ident, reason, _silences(), "silence")


@click.group()
def maintenance() -> None:
    """Plan work on a node: neither pages nor actions on it meanwhile, and its incidents say so.

    \b
    Example:  surefoot maintenance add node=node-7 --for 4h --reason "new riser"
    """


@maintenance.command("add")
@click.argument("matcher")
@click.option("--from", "starts", metavar="TIME", help="When it begins: 2026-12-01T08:00Z. Default: now.")
@_lasts
@_until
@_reason
@_owner
@click.pass_obj
def maintenance_add(
    settings: Settings, matcher: str, starts: str | None, lasts: str | None, until: str | None, reason: str, owner: str | None
) -> None:
    """Plan a maintenance window for what MATCHER is about (see `surefoot silence add`).

    \b
    Example:  surefoot maintenance add node=node-7 --from 2026-12-01T08:00Z --for 4h --reason "new riser"
    """
    from alerts.silences import MAINTAIN
    from surefoot.asking import moment

    _begin(settings, MAINTAIN, matcher, moment(starts) if starts else None, lasts, until, reason, owner)


@maintenance.command("list")
@_all
@_json
@click.pass_obj
def maintenance_list(settings: Settings, everything: bool, as_json: bool) -> None:
    """List the maintenance windows.

    \b
    Example:  surefoot maintenance list --json
    """
    _list(settings, _windows(), everything=everything, as_json=as_json)


@maintenance.command("end")
@click.argument("ident", metavar="ID")
@_why
@click.pass_obj
def maintenance_end(settings: Settings, ident: str, reason: str) -> None:
    """End a maintenance window now, or call off a planned one.

    \b
    Example:  surefoot maintenance end 5f0c12ab34cd
    """
    from alerts.silences import END_MAINTENANCE

    _end(settings, END_MAINTENANCE, ident, reason, _windows(), "maintenance window")


@click.group()
def actions() -> None:
    """See what Surefoot does, and stop all of it.

    \b
    Example:  surefoot actions pause --for 30m --reason "network work"
    """


@actions.command("pause")
@click.option("--for", "lasts", metavar="SPAN", help="How long: 30m, 2h. Default: until `surefoot actions resume`.")
@_reason
@_owner
@click.pass_obj
def actions_pause(settings: Settings, lasts: str | None, reason: str, owner: str | None) -> None:
    """Stop all acting within 2 s: nothing new is issued, and what no launcher has accepted yet is withdrawn.

    Detection and pages go on, and pages say that acting is paused.

    \b
    Example:  surefoot actions pause --for 30m --reason "network work"
    """
    from alerts.holds import hold_id
    from alerts.silences import PAUSE, described
    from pipeline.queries.actions_latest import actions_latest
    from pipeline.queries.pauses_since import pauses_since
    from pipeline.store import Store
    from surefoot.asking import ask, end, request, who

    now = utcnow()
    asked = request(PAUSE, "actions", actor=owner or who(), reason=reason, ends_at=end(now, lasts, None) if lasts else None)
    held = ask(settings, asked, lambda store: _found(pauses_since(store, now - SHOWN), hold_id(asked.intent)))
    if held is None:
        _unheard()
    click.echo(described(held))
    for action in actions_latest(Store.connect(settings), 1000):
        if action.new_state == "accepted":
            click.echo(f"goes on, since its launcher has taken it up: {action.kind} of run {action.run}, attempt {action.attempt}")


@actions.command("resume")
@_why
@click.pass_obj
def actions_resume(settings: Settings, reason: str) -> None:
    """Let Surefoot act again; what is still due is proposed anew.

    \b
    Example:  surefoot actions resume
    """
    from alerts.silences import ENDED, RESUME
    from pipeline.queries.pauses_since import pauses_since
    from pipeline.store import Store
    from surefoot.asking import ask, request, who

    def lasting(store: Store) -> list[str]:
        return [p.hold for p in pauses_since(store, utcnow() - SHOWN) if p.new_state != ENDED]

    if not lasting(Store.connect(settings)):
        raise InputError("acting is not paused")
    if ask(settings, request(RESUME, "actions", actor=who(), reason=reason), lambda store: None if lasting(store) else True) is None:
        _unheard()
    click.echo("Surefoot acts again")


@actions.command("list")
@click.option("--last", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many.")
@_json
@click.pass_obj
def actions_list(settings: Settings, last: int, as_json: bool) -> None:
    """List the newest actions, and whether acting is paused.

    \b
    Example:  surefoot actions list --last 5
    """
    from alerts.silences import paused
    from pipeline.queries.actions_latest import actions_latest
    from pipeline.queries.pauses_since import pauses_since
    from pipeline.store import Store
    from surefoot.asking import clock, table

    store, now = Store.connect(settings), utcnow()
    found = actions_latest(store, last)
    said = paused(pauses_since(store, now - SHOWN), now)
    if as_json:
        click.echo(json.dumps({"paused": said, "actions": [a.attributes() for a in found]}))
        return
    click.echo(said or "acting is not paused")
    if found:
        rows = [(clock(a.at), a.kind, a.new_state, a.run, a.attempt, a.actor, a.reason) for a in found]
        click.echo(table(("changed", "action", "state", "run", "attempt", "by", "reason"), rows))


# --- what they share -------------------------------------------------------------------------


def _silences() -> "Since":
    from pipeline.queries.silences_since import silences_since

    return silences_since


def _windows() -> "Since":
    from pipeline.queries.maintenance_since import maintenance_since

    return maintenance_since


def _begin(
    settings: Settings,
    kind: str,
    matcher: str,
    starts_at: datetime | None,
    lasts: str | None,
    until: str | None,
    reason: str,
    owner: str | None,
) -> None:
    from alerts.holds import hold_id
    from alerts.silences import SILENCE, canonical, described
    from surefoot.asking import ask, end, request, who

    now = utcnow()
    since = _silences() if kind == SILENCE else _windows()
    ends_at = end(starts_at or now, lasts, until)
    asked = request(kind, canonical(matcher), actor=owner or who(), reason=reason, starts_at=starts_at, ends_at=ends_at)
    held = ask(settings, asked, lambda store: _found(since(store, now - SHOWN), hold_id(asked.intent)))
    if held is None:
        _unheard()
    click.echo(f"{described(held)}\nto end it before: surefoot {'silence' if kind == SILENCE else 'maintenance'} end {held.hold}")


def _end(settings: Settings, kind: str, ident: str, reason: str, since: "Since", what: str) -> None:
    from alerts.silences import ENDED
    from pipeline.store import Store
    from surefoot.asking import ask, request, who

    def ended(store: Store) -> bool | None:
        found = _found(since(store, utcnow() - SHOWN), ident)
        return True if found is None or found.new_state == ENDED else None

    if ended(Store.connect(settings)):
        raise InputError(f"no {what} of the id {ident} holds or is planned; `surefoot {what.split()[0]} list` shows them")
    if ask(settings, request(kind, ident, actor=who(), reason=reason), ended) is None:
        _unheard()
    click.echo(f"{what} {ident} is ended")


def _list(settings: Settings, since: "Since", *, everything: bool, as_json: bool) -> None:
    from pipeline.store import Store
    from surefoot.asking import clock, state, table

    now = utcnow()
    found = [(h, state(h, now)) for h in since(Store.connect(settings), now - SHOWN)]
    shown = [(h, s) for h, s in found if everything or s != "ended"]
    if as_json:
        click.echo(json.dumps([h.attributes() | {"state": s} for h, s in shown]))
        return
    heads = ("id", "state", "about", "from", "until", "owner", "reason")
    rows = [(h.hold, s, h.matcher, clock(h.starts_at), clock(h.ends_at) if h.ends_at else "-", h.owner, h.reason) for h, s in shown]
    click.echo(table(heads, rows) if rows else "none")


def _found(held: Sequence["HoldTransition"], ident: str) -> Any:
    return next((h for h in held if h.hold == ident), None)


def _unheard() -> NoReturn:
    click.echo(f"surefoot: {UNHEARD}", err=True)
    sys.exit(1)
