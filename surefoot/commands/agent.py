"""`surefoot agent`: the node's agent."""

from pathlib import Path

import click

from pipeline.settings import AgentSettings, Settings
from surefoot.options import Folder


@click.command()
@click.option("--once", is_flag=True, help="Collect once, print the readings as Prometheus text, and end.")
@click.option("--json", "as_json", is_flag=True, help="With --once: one JSON object: readings by device, with units, and events.")
@click.option("--dry-run", is_flag=True, help="Run on, print what would be sent, a JSON object a line, and send nothing.")
@click.option("--textfile", type=Folder(), metavar="DIR", help="Write the page to DIR/surefoot.prom too; with --once, there only.")
@click.option(
    "--compat",
    type=click.Choice(["dcgm", "node"]),
    multiple=True,
    help="Show dcgm-exporter's or node_exporter's names beside ours; may be given again.",
)
@click.option("--path.procfs", "procfs", type=Folder(), default=Path("/proc"), show_default=True, help="Another /proc, or a saved one.")
@click.option("--path.sysfs", "sysfs", type=Folder(), default=Path("/sys"), show_default=True, help="Another /sys, or a saved one.")
@click.option(
    "--path.kmsg",
    "kmsg",
    type=click.Path(path_type=Path),
    default=Path("/dev/kmsg"),
    show_default=True,
    help="Another kernel log: a saved file does.",
)
@click.pass_obj
def agent(
    settings: Settings,
    once: bool,
    as_json: bool,
    dry_run: bool,
    textfile: Path | None,
    compat: tuple[str, ...],
    procfs: Path,
    sysfs: Path,
    kmsg: Path,
) -> None:
    """Run the node's agent: collectors and the trainers' rings, pushed to ingest and shown on /metrics.

    \b
    Example:  surefoot agent --once
              surefoot agent --once --json --path.sysfs saved/sys --path.procfs saved/proc --path.kmsg saved/kmsg
    """
    from exporters.serve import HERE, Roots, rehearse, serve, show

    if as_json and not once:
        raise click.UsageError("--json goes with --once")
    if once and dry_run:
        raise click.UsageError("--once sends nothing anyway: leave out --dry-run")
    given: dict[str, object] = {"textfile": str(textfile)} if textfile else {}
    given |= {"compat": compat} if compat else {}
    settings = settings.model_copy(update={"agent": AgentSettings.model_validate(settings.agent.model_dump() | given)})
    roots = Roots(procfs, sysfs, kmsg)
    for option, given_path, usual in (("procfs", roots.proc, HERE.proc), ("sysfs", roots.sys, HERE.sys), ("kmsg", roots.kmsg, HERE.kmsg)):
        if given_path != usual and not given_path.exists():
            raise click.BadParameter(f"there is no {given_path}.", param_hint=f"'--path.{option}'")
    if once:
        show(settings, roots, json=as_json)
    elif dry_run:
        rehearse(settings, roots)
    else:
        serve(settings, roots)
