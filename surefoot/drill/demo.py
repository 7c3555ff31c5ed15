"""`surefoot demo`: everything on this machine, a real training broken twice, and the console left open for a look around."""

from pipeline.settings import Settings
from surefoot.drill import stack as stacks
from surefoot.drill.pager import Pager
from surefoot.drill.plan import Pause, Plan, Say
from surefoot.drill.report import as_text
from surefoot.drill.run import hurt, settings_for
from surefoot.drill.stage import stage


def demo(settings: Settings, say: Say, pause: Pause) -> None:
    """Run the demo until `pause` raises; then nothing of it is left."""
    plans = (Plan("kill"), Plan("hang"))
    with stage("surefoot-demo-") as (folder, pager):
        say("starting Surefoot: store, ingest, jobs, agent, console")
        extra = {**settings_for(plans[0], pager), "console": settings.console.model_dump()}
        with stacks.running(folder, extra, pause) as stack:
            say(f"console: {stack.settings.console.link}")
            for plan in plans:
                _act(plan, stack, pager, say, pause)
            say(f"\nSurefoot stays up at {stack.settings.console.link}; Ctrl-C ends it and leaves nothing running.")
            while True:
                pause(60.0)


def _act(plan: Plan, stack: stacks.Stack, pager: Pager, say: Say, pause: Pause) -> None:
    say(f"\n--- {'killing' if plan.kind == 'kill' else 'stopping'} rank {plan.rank} of a real training ---")
    result = hurt(plan, stack, pager, say, pause)
    say(as_text(result))
    say(f"incident: {result.link}")
