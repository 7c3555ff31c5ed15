"""`surefoot stop`: end a run for good, on all its nodes. Each module is loaded when it is needed."""

import sys
from typing import TYPE_CHECKING

import click

from pipeline.errors import InputError
from pipeline.settings import Settings
from surefoot.commands.hold import UNHEARD
from surefoot.options import RunId

if TYPE_CHECKING:
    from pipeline.records import ActionTransition
    from pipeline.store import Store


@click.command()
@click.argument("run", type=RunId())
@click.option("--reason", required=True, help="Why; it stands in the run's end, timeline and console.")
@click.pass_obj
def stop(settings: Settings, run: str, reason: str) -> None:
    """Stop RUN on all its nodes, and do not start it again.

    The leader asks its launchers: each takes evidence, gives the command SIGTERM and `job.grace` seconds, and then kills what is left.

    \b
    Example:  surefoot stop llama-8b --reason "wrong data set"
    """
    from pipeline.catalog.actions import STOP_RUN
    from pipeline.queries.actions_of import actions_of
    from pipeline.queries.run_states import run_states
    from pipeline.store import Store
    from surefoot.asking import ask, request, who

    if not (reason := " ".join(reason.split())):
        raise InputError("--reason is empty: say why the run is stopped")
    known = next(iter(run_states(Store.connect(settings), 1, run)), None)
    if known is None:
        raise InputError(f"no run is called {run}: the console's page Run lists them ({settings.console.link}/run)")
    if known.state != "started":
        raise InputError(f"run {run} is not in progress: it is {known.state}")
    asked = request(STOP_RUN.name, run, actor=who(), reason=reason)

    def ordered(store: "Store") -> "ActionTransition | None":
        return next((a for a in actions_of(store, [], [run]) if a.key.endswith(f"|{asked.intent}")), None)

    found = ask(settings, asked, ordered)
    if found is None:
        click.echo(f"surefoot: {UNHEARD}", err=True)
        sys.exit(1)
    if found.new_state in ("cancelled", "failed", "refused"):
        click.echo(f"surefoot: run {run} goes on: {found.reason}", err=True)
        sys.exit(1)
    click.echo(f"run {run} is being stopped: its command has {found.grace:g} s to end, see {settings.console.link}/run?run={run}")
