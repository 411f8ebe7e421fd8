"""What helps to get a finding fixed, as the API shows it and the pages do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from fastapi import Request
from pydantic import Field
from sqlalchemy.orm import Session

from ldfi.analysis.repairs.advice import Advice, advise
from ldfi.analysis.repairs.issue import Subject, Tracker
from ldfi.analysis.repairs.owners import Owners
from ldfi.analysis.repairs.repair import Lacking
from ldfi.analysis.repairs.request_names import BY_THEIR_NAMES, Called
from ldfi.experiments.api.finding_view import FindingView
from ldfi.experiments.api.view import View
from ldfi.experiments.domain.campaign.lifecycle import FindingState
from ldfi.experiments.queries.finding_summary import share_of
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.findings import Proof, proofs
from ldfi.experiments.store.schema import FindingRow
from ldfi.experiments.telemetry import clock
from ldfi.lineage.run_summary import Runs


class RepairView(View):
    """A suggestion, read from one failed request: what lacks where the failure gets through."""

    missing: Lacking = Field(
        description="What lacks: a timeout, something to fall back on, or a retry.",
        examples=["fallback"],
    )
    service: str = Field(description="Who lacks it.", examples=["api"])
    point: str = Field(
        description="The call at which it lacks.", examples=["api>http:GET:playlist/*"]
    )
    said: str = Field(
        description="What to do.",
        examples=["Give api something to fall back on when playlist does not answer."],
    )
    why: str = Field(description="What was seen.", examples=["Its error became the answer."])
    code: str = Field(
        description="Where the call is made, as far as spans say (`code.*`).",
        examples=["shop/api.py:42"],
    )


class FindingDetail(FindingView):
    """A finding, with what helps to get it fixed."""

    repairs: list[RepairView] = Field(description="What would mend it, what does most first.")


class IssueView(View):
    """The text of an issue, in the markup of a tracker."""

    tracker: Tracker = Field(description="In whose markup it is.")
    title: str = Field(
        description="The title, in one line of plain text.",
        examples=["GET /play is lost when license does not answer"],
    )
    body: str = Field(
        description="The text, in the tracker's markup.", examples=["## What happens\n\n…"]
    )


@dataclass(frozen=True, slots=True)
class Explained:
    """A finding, the experiment that shows best that it hurts, and what to do about it.
    ``share``: of all requests, those of its class; None where nobody asks for anything."""

    row: FindingRow
    proof: Proof | None
    callees: Mapping[str, str]
    advice: Advice
    share: float | None

    @property
    def listed(self) -> FindingView:
        """Show it as lists do."""
        view = FindingView.model_validate(self.row)
        view.sentence, view.owners = self.advice.sentence, list(self.advice.owners)
        view.share = self.share
        return view

    @property
    def view(self) -> FindingDetail:
        """Show it in the words of the API."""
        return FindingDetail(
            **self.listed.model_dump(),
            repairs=[RepairView.model_validate(each) for each in self.advice.repairs],
        )

    def subject(self, public_url: str, command: str) -> Subject:
        """Return what an issue is written of. ``command``: with which to see it."""
        url = f"{public_url}/findings/{self.row.id}" if public_url else ""
        counts = self.proof.counts if self.proof is not None else {}
        row = self.row
        return Subject(
            row.id, row.faults, row.state, url, counts, self.callees, self.advice,
            row.found_at, self.share, command,
        )  # fmt: skip


def explained(
    session: Session,
    found: Sequence[FindingRow],
    engine: Engine | None,
    owners: Owners,
    called: Called = BY_THEIR_NAMES,
) -> list[Explained]:
    """Explain findings: one question, however many there are."""
    by_finding = proofs(session, found)
    known, now = engine.catalogue.classes if engine is not None else {}, clock.now()
    rates = {name: each.rate(now) for name, each in known.items()}
    return [_explained(row, by_finding.get(row.id), engine, rates, owners, called) for row in found]


def owners_of(request: Request) -> Owners:
    """Give who owns what, by the file."""
    owners: Owners = request.app.state.owners
    return owners


def called_of(request: Request) -> Called:
    """Give how people call requests, by the file."""
    called: Called = request.app.state.called
    return called


def _explained(
    row: FindingRow,
    proof: Proof | None,
    engine: Engine | None,
    rates: Mapping[str, float],
    owners: Owners,
    called: Called,
) -> Explained:
    callees = _callees(engine, row.request_class)
    counts, runs = (proof.counts, proof.runs) if proof is not None else ({}, Runs())
    state = cast(FindingState, row.state)
    what = advise(row.request_class, row.faults, state, counts, runs, callees, owners, called)
    return Explained(row, proof, callees, what, share_of(row.request_class, rates))


def _callees(engine: Engine | None, request_class: str) -> Mapping[str, str]:
    """Return what the points of a class reach, while it is known."""
    known = engine.catalogue.classes.get(request_class) if engine is not None else None
    return known.traffic.topology.callees if known is not None else {}
