"""The nodes, as the pages of the fleet and of one node read them; what both say about a node is said here."""

from dataclasses import replace
from typing import Final

from dashboard import palette, parts, words
from dashboard.markup import Html, join, link, span
from dashboard.read import REFRESH, Sheet, settings
from pipeline.hold_records import HoldTransition
from pipeline.nodes import Facts, HeldBack, Node, NodeState, fleet, silent
from pipeline.queries.collectors_failing import collectors_failing
from pipeline.queries.findings_open import findings_open
from pipeline.queries.incidents_unsettled import incidents_unsettled
from pipeline.queries.launchers_now import launchers_now
from pipeline.queries.maintenance_since import maintenance_since
from pipeline.queries.mounts_fullest import mounts_fullest
from pipeline.queries.nodes_heard import nodes_heard
from pipeline.queries.nodes_known import nodes_known
from pipeline.queries.nodes_now import NodeNow, nodes_now
from pipeline.queries.run_states import run_states
from pipeline.queries.silences_since import silences_since
from pipeline.vitals import AGENT, patience

START: Final = "SUREFOOT_INGEST__URL=http://INGEST-HOST:4318 SUREFOOT_INGEST__TOKEN_FILE=TOKEN-FILE surefoot agent"
"""How an agent is started on another machine; the token is that of ingest, in its state folder."""
_WINDOW: Final = 120.0  # seconds over which shares of time are taken
_HOURS_BACK: Final = 24  # in which an agent that is silent is looked for
_RUNS: Final = 500


def window() -> float:
    """Seconds that a share of time is taken over: long enough for an agent that reads seldom."""
    return max(_WINDOW, 2 * patience(AGENT, settings()))


def everything(sheet: Sheet) -> list[Node]:
    """All nodes that were heard of, worst first."""
    recent, until = sheet.ago(seconds=window()), sheet.ago(seconds=-REFRESH)
    holds: list[HoldTransition] = [*sheet.rows(silences_since, sheet.ago()), *sheet.rows(maintenance_since, sheet.ago())]
    facts = Facts(
        known=sheet.rows(nodes_known),
        now=sheet.rows(nodes_now, recent, until),
        mounts=sheet.rows(mounts_fullest, recent, until),
        launchers=sheet.rows(launchers_now, sheet.ago(hours=1), until),
        failing=sheet.rows(collectors_failing, recent, until),
        runs=sheet.rows(run_states, _RUNS),
        incidents=sheet.rows(incidents_unsettled, sheet.ago()),
        findings=sheet.rows(findings_open),
        holds=holds,
    )
    if quiet := silent(facts):
        facts = replace(facts, heard=sheet.rows(nodes_heard, quiet, sheet.ago(hours=_HOURS_BACK), until))
    return fleet(facts, settings(), sheet.now)


def state(node: Node) -> Html:
    """The state of a node as a badge."""
    return parts.badge(node.state, palette.NODES[node.state])


def held(node: Node, sheet: Sheet) -> list[Html]:
    """What is held back on a node now, as chips."""
    return [span("sf-chip", _held_word(h), title=held_sentence(h, sheet)) for h in node.holding(sheet.now)]


def _held_word(h: HeldBack) -> str:
    word = "in maintenance" if h.maintenance else "silenced"
    return word if h.whole else f"partly {word}"


def held_sentence(h: HeldBack, sheet: Sheet) -> str:
    """A hold in one line."""
    until = f"until {words.when(h.hold.ends_at, sheet.now)}" if h.hold.ends_at else "until it is ended"
    return f"{h.hold.matcher} {until} by {h.hold.owner}: {h.hold.reason}"


def heard(node: Node, sheet: Sheet) -> str:
    """When a node was last heard; where only its launcher is, that it is the launcher."""
    at = node.signs.heard_at
    if at is None:
        return "over a day ago, or never"
    return words.ago(at, sheet.now) + (" by its launcher" if node.state is NodeState.LOST and at != node.signs.agent_at else "")


def runs(node: Node) -> list[Html]:
    """The runs on a node, each with its ranks there."""
    return [join(link("run", r.run, run=r.run), span("sf-quiet sf-small", f" {words.plural(r.ranks, 'rank')}")) for r in node.runs]


def pressure(now: NodeNow | None) -> tuple[str, float] | None:
    """What tasks waited for the longest, and for what share of the time."""
    shares = {"CPU": now.cpu_pressure, "memory": now.memory_pressure, "I/O": now.io_pressure} if now else {}
    told = [(share, what) for what, share in shares.items() if share is not None]
    share, what = max(told, default=(None, ""))
    return None if share is None else (what, share)
