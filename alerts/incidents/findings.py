"""Verdicts into findings and their incidents: which are new, which put something right, which are over."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from alerts.book import Book
from alerts.detectors import fault_rule
from alerts.detectors.registry import BY_NAME, DETECTORS
from alerts.detectors.verdict import Verdict
from alerts.ids import mint
from alerts.incidents.correlate import first_finding, first_transition, home, refinement
from alerts.incidents.lifecycle import State, move
from alerts.snapshot import Snapshot
from alerts.transitions import follow
from pipeline.catalog.faults import BY_NAME as FAULTS
from pipeline.queries.finding_counts import finding_counts
from pipeline.records import FindingTransition


@dataclass(frozen=True, slots=True)
class Findings:
    """Keeps the book's findings in step with what the detectors say. Raises StoreError."""

    book: Book

    def reconcile(self, snapshot: Snapshot, now: datetime) -> None:
        """One look of every detector."""
        verdicts = [verdict for detector in DETECTORS for verdict in detector.detect(snapshot, now)]
        new = [v for v in verdicts if self.book.finding(v.key) is None]
        for verdict in verdicts:
            if finding := self.book.finding(verdict.key):
                self._refine(finding, verdict, now)
        self._open(new, now)
        for finding in list(self.book.findings.values()):
            reason = self._over(finding, snapshot, now)
            if reason:
                self.book.write(follow(finding, "cleared", reason, now, actor=finding.detector))

    def _over(self, finding: FindingTransition, snapshot: Snapshot, now: datetime) -> str | None:
        """Why a finding is over; of one that no detector holds any more, that its incident is."""
        incident = self.book.incidents.get(finding.incident)
        if incident and incident.new_state == State.RESOLVED:
            return f"its incident is resolved: {incident.reason}"
        detector = BY_NAME.get(finding.detector)
        return detector.clears(finding, snapshot, now) if detector else None

    def _open(self, verdicts: Iterable[Verdict], now: datetime) -> None:
        new = list(verdicts)
        earlier = finding_counts(self.book.store, [v.key for v in new]) if new else {}
        for verdict in new:
            times = earlier.get(verdict.key, 0)
            if not (times and BY_NAME[verdict.detector].once):
                self.open_one(verdict, times, now)

    def open_one(self, verdict: Verdict, times: int, now: datetime) -> None:
        """Open the finding of `verdict`, the `times`-th after the first of its key, and its incident where it has none yet."""
        finding = mint("finding", verdict.key, times)
        joined = home(verdict, self.book.incidents.values())
        if joined and not verdict.run:
            verdict = replace(verdict, run=joined.run)
        incident = joined.incident if joined else mint("incident", finding)
        evidence = json.dumps({"reason": verdict.reason, **verdict.evidence}, default=str)
        self.book.write(first_finding(verdict, finding, incident, now, evidence))
        if joined is None:
            self.book.write(first_transition(verdict, incident, now))
        else:
            self._put_right(incident, verdict, now)

    def mend(self) -> None:
        """Open the incidents of findings that were written just before we were killed."""
        for finding in self.book.findings.values():
            if finding.incident and finding.incident not in self.book.incidents:
                self.book.write(first_transition(_verdict(finding), finding.incident, finding.at))

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
