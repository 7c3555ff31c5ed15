"""Verdicts into findings and their incidents: which are new, which belong together, which put something right, which are over."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from alerts.book import Book
from alerts.detectors import fault_rule
from alerts.detectors.registry import BY_NAME, DETECTORS
from alerts.detectors.verdict import Verdict
from alerts.ids import mint
from alerts.incidents.causes import CAUSES, TOLD, Death, because, deaths, explains, part_of
from alerts.incidents.correlate import absorbs, first_finding, first_transition, home, refinement, title
from alerts.incidents.flapping import counted
from alerts.incidents.last_words import LastWords
from alerts.incidents.lifecycle import State, move
from alerts.incidents.siblings import Kin, Member, about, eldest, kin, member, where, why
from alerts.snapshot import Snapshot
from alerts.transitions import follow
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.catalog.layers import gravity
from pipeline.queries.finding_counts import Earlier, finding_counts
from pipeline.records import FindingTransition, IncidentTransition
from pipeline.topology import Topology


@dataclass(slots=True)
class Findings:
    """Keeps the book's findings in step with what the detectors say. Raises StoreError.

    Findings are stored before the incidents that they open, so that a kill between the two is mended from the findings.
    """

    book: Book
    words: LastWords
    topology: Topology = field(default_factory=Topology)
    _gathered: frozenset[str] = frozenset()  # the findings that were looked at for common causes

    def reconcile(self, snapshot: Snapshot, now: datetime) -> None:
        """One look of every detector."""
        verdicts = [verdict for detector in DETECTORS for verdict in detector.detect(snapshot, now)]
        there = {finding.key: finding for finding in self.book.findings.values()}
        for verdict in verdicts:
            if finding := there.get(verdict.key):
                self._refine(finding, verdict, now)
        self._open([v for v in verdicts if v.key not in there], now)
        self._absorb(now)
        self._explain(verdicts, now)
        self._gather(now)
        over = [(finding, self._over(finding, snapshot, now)) for finding in self.book.findings.values()]
        self.book.write_together([follow(f, "cleared", reason, now, actor=f.detector) for f, reason in over if reason])

    def _over(self, finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
        """Why a finding is over; of one that no detector holds any more, that its incident is."""
        incident = self.book.incidents.get(finding.incident)
        if incident and incident.new_state == State.RESOLVED:
            return f"its incident is resolved: {incident.reason}"
        detector = BY_NAME.get(finding.detector)
        return detector.clears(finding, snapshot, now) if detector else None

    # --- opening ---------------------------------------------------------------------------------

    def _open(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        """Open the findings of `verdicts`, and the incidents of those that belong to none: those with one cause open one."""
        new = list(verdicts)
        earlier = finding_counts(self.book.store, [v.key for v in new]) if new else {}
        counts = {key: told.opened for key, told in earlier.items()}
        due = [(v, mint("finding", v.key, counts.get(v.key, 0))) for v in new if not _told(v, earlier.get(v.key))]
        drafts, homes = self._homes(due, now)
        known = self.book.incidents | drafts
        opened = [_first(verdict, finding, known.get(homes[finding]), homes[finding], now) for verdict, finding in due]
        self.book.write_together(opened)
        self.book.write_together([draft for draft in drafts.values() if draft.incident in homes.values()])
        for verdict, finding in due:
            if homes[finding] != mint("incident", finding):
                self._put_right(homes[finding], verdict, now)

    def _homes(self, due: Sequence[tuple[Verdict, str]], now: datetime) -> tuple[dict[str, IncidentTransition], dict[str, str]]:
        """The incidents that would open, and the incident of each finding."""
        drafts: dict[str, IncidentTransition] = {}
        homes: dict[str, str] = {}
        before = {f.key: f for f in self.book.past.values()}
        gravest_first = sorted(due, key=lambda one: gravity(one[0].fault.severity) if one[0].device else 0)  # of what befell a device
        for verdict, finding in gravest_first:
            joined = self._back(verdict, before) or self._came_of(verdict, now)
            joined = joined or home(verdict, chain(self.book.incidents.values(), drafts.values()))
            if joined is None:
                joined = first_transition(verdict, mint("incident", finding), now)
                drafts[joined.incident] = joined
            homes[finding] = joined.incident
        known = self.book.incidents | drafts
        new = [member(verdict, known[homes[finding]], now) for verdict, finding in due]
        for related in kin([*self._members(), *filter(None, new)], self.topology):
            root = eldest(self._old(related) or [drafts[i] for i in related.incidents])
            moved = related.incidents & drafts.keys() - {root.incident}
            homes |= {finding: root.incident for finding, incident in homes.items() if incident in moved}
            if root.incident in drafts:
                drafts[root.incident] = replace(root, **about(root, related))
        return drafts, homes

    def _back(self, verdict: Verdict, before: Mapping[str, FindingTransition]) -> IncidentTransition | None:
        """The incident that was about the same before, where it stayed open to see whether it comes back."""
        last = before.get(verdict.key)
        incident = self.book.incidents.get(self.book.root(last.incident)) if last and last.attempt == verdict.attempt else None
        return incident if incident and incident.new_state != State.RESOLVED else None

    def _absorb(self, now: datetime) -> None:
        """Let what was found of a device be part of the graver incident that was found of it since: who was told is told anew, of one."""
        of_device: dict[tuple[str, str], list[IncidentTransition]] = {}
        for one in self.book.unresolved():
            of_device.setdefault((one.node, one.device), []).append(one)
        for other in [one for several in of_device.values() if len(several) > 1 for one in several]:
            if graver := [one for one in of_device[other.node, other.device] if absorbs(one, other)]:
                root = min(graver, key=lambda one: (gravity(one.severity), one.detected_at or one.at, one.incident))
                self._merge(other, root, f"the same device is hit harder: part of incident {root.incident}", now)
        self._rehome(now)

    # --- what came of what ------------------------------------------------------------------------

    def _explain(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        """Make each failure that an explicit fault explains an incident of that fault, with its finding."""
        there = {finding.key: finding for finding in self.book.findings.values()}
        causes = [v for v in verdicts if v.fault.name in CAUSES and v.key in there]
        self.words.forget({i.incident for i in self.book.unresolved()})
        for cause in sorted(causes, key=lambda v: not v.under):  # of two full file systems rather that of the checkpoints
            for incident in self._failures():
                if explains(cause, incident, self._deaths(incident, cause, now)):
                    self._take(there[cause.key], incident, now)
                    if changes := because(incident, cause, now):
                        self.book.write(move(incident, State(incident.new_state), cause.reason, now, **changes))

    def _take(self, finding: FindingTransition, incident: IncidentTransition, now: datetime) -> None:
        """Let the finding of a cause be one of the failure's incident, and what was open about it alone be that incident."""
        other = self.book.incidents.get(self.book.root(finding.incident))
        if other is None or other.incident == incident.incident or incident.recovered_at:
            return
        if part_of(other, incident):
            self._merge(other, incident, f"attempt {incident.attempt} failed by it: part of incident {incident.incident}", now)
            self._rehome(now)
        elif other.recovered_at and other.run == incident.run:
            self.book.write(follow(self.book.findings[finding.finding], "open", finding.reason, now, incident=incident.incident))

    def _came_of(self, cause: Verdict, now: datetime) -> IncidentTransition | None:
        """The open incident of a failure that `cause` explains, also where the run has recovered meanwhile."""
        if cause.fault.name not in CAUSES:
            return None
        return next((i for i in self._failures() if explains(cause, i, self._deaths(i, cause, now))), None)

    def _failures(self) -> list[IncidentTransition]:
        return [i for i in self.book.unresolved() if i.attempt]

    def _deaths(self, incident: IncidentTransition, cause: Verdict, now: datetime) -> list[Death]:
        printed = self.words.of(incident, now) if cause.fault.name in TOLD and cause.node == incident.node else ""
        return deaths((*self.book.findings_of(incident.incident), *self.book.past_of(incident.incident)), printed)

    def _merge(self, other: IncidentTransition, root: IncidentTransition, reason: str, now: datetime) -> None:
        self.book.write(move(other, State.RESOLVED, reason, now, resolved_at=max(now, other.at), merged_into=root.incident))

    # --- common causes ---------------------------------------------------------------------------

    def _gather(self, now: datetime) -> None:
        """Make incidents that turn out to have one cause one, and let their titles say how many there are and how often it came."""
        seen = frozenset((*self.book.findings, *self.book.past))
        if seen == self._gathered:
            return
        related = kin(self._members(), self.topology)
        for one in related:
            root = eldest(self._old(one))
            self._retell(root, about(root, one), why(one), now)
            for other in sorted(one.incidents - {root.incident}):
                reason = f"the same as incident {root.incident}: {where(one)}"
                self._merge(self.book.incidents[other], root, reason, now)
        self._rehome(now)
        of_many = {self.book.root(i) for one in related for i in one.incidents}
        for incident in self.book.unresolved():
            if incident.incident not in of_many:
                said = title(FAULTS[incident.fault], incident.run, incident.node, incident.rank, incident.device)
                self._retell(incident, {"title": said}, "", now)
        self._gathered = seen

    def _retell(self, incident: IncidentTransition, changes: dict[str, Any], reason: str, now: datetime) -> None:
        """Write what an incident is about, with how often it came; nothing where it says so already."""
        mine = [f for f in (*self.book.findings.values(), *self.book.past.values()) if self.book.root(f.incident) == incident.incident]
        count = counted(mine)
        if not count and not reason:
            return
        changes["title"] += f" ({count})" if count else ""
        if any(getattr(incident, name) != value for name, value in changes.items()):
            told = f"it came back: {count}" if count and count not in incident.title else reason
            self.book.write(move(incident, State(incident.new_state), told, now, **changes))

    def _members(self) -> list[Member]:
        """The open and past findings of a node's own faults, of incidents that are not resolved."""
        found = []
        for finding in (*self.book.findings.values(), *self.book.past.values()):
            incident = self.book.incidents.get(self.book.root(finding.incident))
            if incident and (one := member(finding, incident, finding.at)):
                found.append(one)
        return found

    def _old(self, related: Kin) -> list[IncidentTransition]:
        return [self.book.incidents[i] for i in related.incidents if i in self.book.incidents]

    def _rehome(self, now: datetime) -> None:
        """The open findings of incidents that turned out to be others are those others'."""
        stray = [f for f in self.book.findings.values() if self.book.root(f.incident) != f.incident]
        self.book.write_together([follow(f, "open", f.reason, now, incident=self.book.root(f.incident)) for f in stray])

    # --- putting right ---------------------------------------------------------------------------

    def mend(self, now: datetime) -> None:
        """Finish what a kill left undone: incidents of findings that were written just before, findings of incidents just merged."""
        founders_first = sorted(self.book.findings.values(), key=lambda f: mint("incident", f.finding) != f.incident)
        for finding in founders_first:
            if finding.incident and finding.incident not in self.book.incidents:
                self.book.write(first_transition(_verdict(finding), finding.incident, finding.at))
        self._rehome(now)

    def _refine(self, finding: FindingTransition, verdict: Verdict, now: datetime) -> None:
        if not self._put_right(finding.incident, verdict, now):
            return
        self.book.write(
            follow(
                finding,
                "open",
                verdict.reason,
                now,
                actor=verdict.detector,
                fault=verdict.fault.name,
                layer=verdict.fault.layer,
                node=verdict.node,
                rank=verdict.rank,
                confidence=verdict.confidence,
                evidence=json.dumps({"reason": verdict.reason, **verdict.evidence}, default=str),
            )
        )

    def _put_right(self, incident: str, verdict: Verdict, now: datetime) -> bool:
        last = self.book.incidents.get(incident)
        changes = refinement(last, verdict, now) if last and last.new_state != State.RESOLVED else {}
        if last and changes:
            self.book.write(move(last, State(last.new_state), verdict.reason, now, **changes))
        return bool(changes)


def _told(verdict: Verdict, earlier: Earlier | None) -> bool:
    """Whether a verdict is about what an earlier finding of its key told: a leader that begins anew reads old events again."""
    again = verdict.happened is not None and earlier is not None and verdict.happened <= earlier.last
    return again or (earlier is not None and BY_NAME[verdict.detector].once)


def _first(verdict: Verdict, finding: str, joined: IncidentTransition | None, incident: str, now: datetime) -> FindingTransition:
    """A finding's opening; a node's own fault is about the run of the incident that it joins."""
    if joined and not verdict.run:
        verdict = replace(verdict, run=joined.run)
    evidence = json.dumps({"reason": verdict.reason, **verdict.evidence}, default=str)
    return first_finding(verdict, finding, incident, now, evidence)


def _verdict(finding: FindingTransition) -> Verdict:
    """The verdict that a finding was opened with."""
    return Verdict(
        key=finding.key,
        detector=finding.detector,
        fault=FAULTS[finding.fault],
        run=finding.run,
        attempt=finding.attempt,
        reason=finding.reason,
        onset=finding.onset or finding.at,
        node=finding.node,
        rank=finding.rank,
        device=finding.device,
        confidence=finding.confidence,
        located=finding.detector == fault_rule.NAME,
    )
