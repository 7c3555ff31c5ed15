"""`surefoot demo`: everything on this machine, a real training broken twice, and the console left open for a look around."""

import shutil
import signal
import tempfile
import threading
from pathlib import Path

from pipeline.settings import Settings
from surefoot.drill import stack as stacks
from surefoot.drill.pager import Pager
from surefoot.drill.plan import Plan
from surefoot.drill.report import as_text
from surefoot.drill.run import hurt, settings_for
from surefoot.drill.watch import Say


def demo(settings: Settings, say: Say) -> int:
    """Run the demo until Ctrl-C; the exit code is 0 where both faults were handled right."""
    stopping = threading.Event()
    folder = Path(tempfile.mkdtemp(prefix="surefoot-demo-"))
    pager = Pager()
    plans = (Plan("kill"), Plan("hang"))
    stack: stacks.Stack | None = None
    try:
        say("starting Surefoot: store, ingest, jobs, agent, console")
        stack = stacks.start(folder, {**settings_for(plans[0], pager), "console": settings.console.model_dump()})
        say(f"console: {stack.settings.console.link}")
        results = [_act(plan, stack, pager, say) for plan in plans]
        say(f"\nSurefoot stays up at {stack.settings.console.link}; Ctrl-C ends it and leaves nothing running.")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopping.set())
        stopping.wait()
        return 0 if all(results) else 1
    except KeyboardInterrupt:
        return 130
    finally:
        say("stopping")
        if stack:
            stack.stop()
        pager.close()
        shutil.rmtree(folder, ignore_errors=True)


def _act(plan: Plan, stack: stacks.Stack, pager: Pager, say: Say) -> bool:
    say(f"\n--- {'killing' if plan.kind == 'kill' else 'stopping'} rank {plan.rank} of a real training ---")
    result = hurt(plan, stack, pager, say)
    say(as_text(result))
    say(f"incident: {result.link}")
    return result.right
