"""The command line. A command imports its room only when it is run, so that each loads no more than it needs."""

import errno
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from inspect import cleandoc
from pathlib import Path

import click
import structlog
from click.core import ParameterSource

from pipeline.errors import NotPossible, SurefootError
from pipeline.settings import Settings, forget, keep_loopback_direct, load, pass_on
from surefoot import __version__, parent
from surefoot.commands.agent import agent
from surefoot.commands.change import change
from surefoot.commands.hold import actions, maintenance, silence
from surefoot.commands.report import report
from surefoot.commands.run import run
from surefoot.commands.stop import stop
from surefoot.drill.kinds import COMPARED, LINES, OF_A_NODE, SPREAD, told
from surefoot.options import Folder, Seconds
from surefoot.signals import ENDING, Interrupted, Signals

CHATTY = {  # what these log below this level we report ourselves, once
    "apscheduler.scheduler": logging.ERROR,
    "clickhouse_connect": logging.CRITICAL,
    "urllib3": logging.ERROR,
}

EXTRAS = {  # the extra that brings a module which a command may miss
    **dict.fromkeys(("clickhouse_connect", "apscheduler", "pyarrow", "starlette", "uvicorn"), "server"),
    "chdb": "embedded",
    "streamlit": "console",
    "altair": "console",
    "torch": "torch",
}


class _Commands(click.Group):
    """Turns every error that Surefoot reports, and the system's about a file, into one line and exit code 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except Interrupted as e:
            for number in ENDING:  # all is done: one more must not change the exit code
                signal.signal(number, signal.SIG_IGN)
            ctx.exit(e.code)
        except ModuleNotFoundError as e:
            missing = (e.name or "").split(".")[0]
            if missing not in EXTRAS:
                raise
            extra = EXTRAS[missing]
            click.echo(f"surefoot: this command needs more than the base install: in Surefoot's clone, pip install '.[{extra}]'", err=True)
            ctx.exit(2)
        except SurefootError as e:
            click.echo(f"surefoot: {e}", err=True)
            ctx.exit(4 if isinstance(e, NotPossible) else 2)
        except OSError as e:
            if e.filename is None:
                raise
            click.echo(f"surefoot: cannot use {e.filename}: {e.strerror}", err=True)
            ctx.exit(2)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="surefoot")
@click.option("--config", type=click.Path(path_type=Path), help="Settings file (YAML); also SUREFOOT_CONFIG.")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info", show_default=True)
@click.option("--parent", "parent_pid", type=int, hidden=True, help="End when this process does.")
@click.pass_context
def cli(ctx: click.Context, config: Path | None, log_level: str, parent_pid: int | None) -> None:
    """Surefoot watches large training runs: sees a fault, says where it lies, restarts the run, accounts for the loss.

    \b
    Everything on this machine:   surefoot up
    Watch a run:                  surefoot run -- torchrun --nproc-per-node 8 train.py
    Prove that it works here:     surefoot drill kill
    """
    if parent_pid is not None:
        parent.die_with(parent_pid)
    _log_to_stderr(log_level)
    keep_loopback_direct()
    ctx.obj = load(config)
    if config:
        pass_on(config)


def _log_to_stderr(level: str) -> None:
    """Lines for a person on a terminal, logfmt in a file."""
    for name, lowest in CHATTY.items():
        logging.getLogger(name).setLevel(lowest)
    shared: list[structlog.typing.Processor] = [structlog.contextvars.merge_contextvars, structlog.processors.add_log_level]
    shared += [structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info]
    logfmt = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"])
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        processors=[*shared, structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else logfmt],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


@cli.command()
@click.pass_obj
def up(settings: Settings) -> None:
    """Run everything on this machine: store, ingest, jobs, console and agent.

    A part that dies is started again. Ctrl-C stops them all and leaves nothing running.

    \b
    Example:  surefoot up
    """
    from surefoot.up import serve

    sys.exit(serve(settings))


@cli.command()
@click.pass_obj
def store(settings: Settings) -> None:
    """Run the embedded store: ClickHouse's HTTP protocol on loopback, rows in the state folder.

    \b
    Example:  surefoot store
    """
    from pipeline.embedded.process import serve

    serve(settings)


@cli.command()
@click.pass_obj
def migrate(settings: Settings) -> None:
    """Bring the tables of the store up to date; prints what was applied. Safe to repeat.

    \b
    Example:  SUREFOOT_CLICKHOUSE_URL=https://clickhouse:8443 surefoot migrate
    """
    from pipeline.migrate import migrate as apply
    from pipeline.store import Store

    applied = apply(Store.connect(settings, database="default"), settings)  # ours may not be there yet
    click.echo("\n".join(applied) or "up to date")


@cli.command()
@click.pass_obj
def ingest(settings: Settings) -> None:
    """Run the receiver: OTLP over HTTP in, rows out, nothing acknowledged is lost.

    \b
    Example:  surefoot ingest
    """
    from pipeline.ingest.receivers import serve

    serve(settings)


@cli.command()
@click.pass_obj
def jobs(settings: Settings) -> None:
    """Run the leader: detectors, incidents, recovery, pages, and the goodput ledger.

    \b
    Example:  surefoot jobs
    """
    from surefoot.jobs import serve

    serve(settings)


@cli.command()
@click.pass_obj
def console(settings: Settings) -> None:
    """Run the console in the browser.

    \b
    Example:  surefoot console
    """
    from surefoot.console import serve

    serve(settings)


@cli.command()
@click.argument("kind", type=click.Choice(tuple(LINES)))
@click.option("--rank", type=click.IntRange(0, 1), default=1, show_default=True, help="The rank to hurt.")
@click.option(
    "--where",
    type=click.Choice(["outside", "inside"]),
    show_default="outside",
    help="hang only: stop it outside or inside a collective.",
)
@click.option(
    "--mode", type=click.Choice(["auto", "approve"]), default="auto", show_default=True, help="Whether the restart waits for a person."
)
@click.option(
    "--nodes",
    type=click.IntRange(1, 2),
    show_default="1; node-loss: 2",
    help="kill, hang, node-loss: nodes that the two ranks are spread over, as namespaces on this machine (2 needs root).",
)
@click.option("--steps", type=click.IntRange(60, 100_000), show_default="110; disk-full, read-only: 160", help="Length of the training.")
@click.option(
    "--also-kill", type=click.Choice(["ingest", "store", "jobs"]), help="SIGKILL this part of Surefoot right after the fault, too."
)
@click.option("--keep", type=Folder(), help="Keep state, logs and losses in this new folder.")
@click.option(
    "--timeout",
    type=Seconds(20, 3600),
    default=120.0,
    show_default=True,
    help="Give up, and stop the training, where the fault is not mended in this many seconds.",
)
@click.option(
    "--compare",
    type=click.Choice(["torchrun"]),
    help="kill, hang: then do the same under bare torchrun (and NVRx's ft_launcher, where installed), and print what each lost.",
)
@click.option(
    "--into", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="With --compare: write the table into this file."
)
@click.option("--json", "as_json", is_flag=True, help="Last, print the result as one JSON object on one line.")
@click.pass_obj
def drill(_: Settings, /, kind: str, where: str | None, compare: str | None, into: Path | None, as_json: bool, **plan: object) -> None:
    """Hurt a real training run for real and measure what Surefoot does about it.

    Starts a stack of its own on free ports, a two-rank PyTorch training on it, injects the fault, and waits for
    detection, page, location, restart and resolution. Ctrl-C stops it all and leaves nothing running or mounted.

    \b
    KIND is one of:
    {kinds}

    \b
    Exit code 0: all of it was right; 1: something was not; 2: the drill could not be run;
    3: nothing finds this fault yet; 4: it is not possible here, the message says what is missing.

    \b
    Example:  surefoot drill hang --where inside --json
    """
    _check_fits(kind, where, compare, plan["nodes"])
    with _interruptible() as signals:
        from surefoot.drill.compare import compare as side_by_side
        from surefoot.drill.compare import write_into
        from surefoot.drill.cost import table
        from surefoot.drill.kinds.registry import BY_NAME
        from surefoot.drill.plan import Plan
        from surefoot.drill.report import as_json_line, as_text
        from surefoot.drill.run import drill as carry_out

        forget()  # what is set for the cluster is not for a drill: it neither stores nor pages there
        plan["steps"] = plan["steps"] or BY_NAME[kind].steps
        plan |= {"nodes": plan["nodes"] or BY_NAME[kind].nodes, "spares": BY_NAME[kind].spares}
        wanted = Plan(kind, where=where or "outside", **plan)  # type: ignore[arg-type]  # click has checked the types
        if compare:
            result, costs = side_by_side(wanted, say=click.echo, pause=signals.pause)
        else:
            result, costs = carry_out(wanted, say=click.echo, pause=signals.pause), []
    click.echo(as_text(result))
    if costs:
        click.echo("\n" + table(costs, kind))
    if costs and into:
        write_into(into, kind, table(costs, kind))
    if as_json:
        click.echo(as_json_line(result, costs))
    sys.exit(result.exit_code)


def _check_fits(kind: str, where: str | None, compare: str | None, nodes: object) -> None:
    """Raises UsageError for an option that the kind does not take."""
    if where and kind != "hang":
        raise click.UsageError(f"--where is for hang only, not for {kind}")
    if kind in OF_A_NODE and click.get_current_context().get_parameter_source("rank") is ParameterSource.COMMANDLINE:
        raise click.UsageError(f"--rank is not for {kind}: it hits the whole node")
    if nodes == 2 and kind not in SPREAD:
        raise click.UsageError(f"--nodes is for {', '.join(SPREAD)}, not for {kind}")
    if kind == "node-loss" and nodes == 1:
        raise click.UsageError("node-loss takes two nodes: leave --nodes out")
    if compare and nodes == 2:
        raise click.UsageError("--compare is for one node")
    if compare and kind not in COMPARED:
        raise click.UsageError(f"--compare is for {' and '.join(COMPARED)}")


drill.help = cleandoc(drill.help or "").replace("{kinds}", told())


@cli.command()
@click.pass_obj
def demo(settings: Settings) -> None:
    """Run everything, train for real, break it twice, and stay up for a look around, until Ctrl-C.

    \b
    Example:  surefoot demo
    """
    with _interruptible() as signals:
        from surefoot.drill.demo import demo as show

        forget()
        show(settings, say=click.echo, pause=signals.pause)


@contextmanager
def _interruptible() -> Iterator[Signals]:
    """Whatever else comes of the block: a signal that ends us while it runs decides the exit code."""

    def stopping() -> None:
        with suppress(OSError):  # the terminal may be gone
            click.echo("stopping")

    with Signals(stopping) as signals:
        try:
            yield signals
        finally:
            if signals.number:
                raise Interrupted(signals.number)


for command in (agent, run, change, report, stop, silence, maintenance, actions):
    cli.add_command(command)


@cli.command()
@click.option("--coverage", is_flag=True, help="List every fault of the catalogue with what finds it.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object on one line.")
@click.pass_obj
def doctor(settings: Settings, coverage: bool, as_json: bool) -> None:
    """Check what Surefoot needs on this machine: a line each, with what to do. Exit code 0: all is well; 1: something is not.

    It looks, and changes nothing. With --coverage: which faults are found, by what, and what the others wait for.

    \b
    Example:  surefoot doctor
              surefoot doctor --coverage
    """
    if coverage:
        from surefoot.doctor import coverage_json, coverage_text

        click.echo(coverage_json() if as_json else coverage_text())
        return
    from surefoot.checkup import as_json as one_line
    from surefoot.checkup import as_text, checkup, well

    checks = checkup(settings)
    click.echo(one_line(checks) if as_json else as_text(checks))
    sys.exit(0 if well(checks) else 1)


UNWRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def main() -> None:
    """The console script. What cannot be printed is an error in one line, and where the reader has gone a quiet end."""
    try:
        try:
            cli.main(prog_name="surefoot")
        finally:
            sys.stdout.flush()
    except OSError as e:
        if e.filename is not None or e.errno not in UNWRITTEN | {errno.EPIPE}:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left must not fail once more at the end
        if e.errno in UNWRITTEN:
            click.echo(f"surefoot: cannot write what is to be printed: {e.strerror}", err=True)
        sys.exit(2 if e.errno in UNWRITTEN else 1)
