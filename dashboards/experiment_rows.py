"""Experiments as people say them: what was tried on what, and what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from ldfi.analysis.phrases import said_shortly
from ldfi.dashboards.words import listed
from ldfi.experiments.queries.experiment_summary import ExperimentSummary
from ldfi.experiments.queries.finding_summary import CalleesOf
from ldfi.experiments.queries.wording import OUTCOMES, purpose_in_words

Kind = Literal["harmful", "tolerated", "none", "running"]
KINDS: Final[dict[Kind, str]] = {
    "harmful": OUTCOMES["harmful"],
    "tolerated": OUTCOMES["tolerated"],
    "none": OUTCOMES["inconclusive"],
    "running": "running",
}
"""What a mark says, and in which words."""


@dataclass(frozen=True, slots=True)
class Tried:
    """One experiment. ``said``: what failed on purpose."""

    summary: ExperimentSummary
    said: str

    @property
    def why(self) -> str:
        """For what it was tried, in words; nothing is said of what is tried to find out."""
        purpose = self.summary.purpose
        return "" if purpose == "explore" else purpose_in_words(purpose)

    @property
    def reason(self) -> str:
        """Why it ended, where that is not the evidence."""
        return "" if self.summary.reason == "evidence" else self.summary.reason


def said_ended(ended: Mapping[str, int]) -> str:
    """Say what came of all experiments there ever were. ``ended``: how many, by verdict."""
    total = sum(ended.values())
    if not total:
        return "No experiment has ended yet"
    parts = [
        f"{ended[verdict]:,} {words}"
        for verdict, words in (
            ("harmful", OUTCOMES["harmful"]),
            ("tolerated", OUTCOMES["tolerated"]),
            ("inconclusive", "without an answer"),
            ("", OUTCOMES["aborted"]),
        )
        if ended.get(verdict)
    ]
    one = "experiment has" if total == 1 else "experiments have"
    return f"{total:,} {one} ended: {listed(parts)}"


def tried_of(summaries: Iterable[ExperimentSummary], callees_of: CalleesOf) -> list[Tried]:
    """Say what these tried; the same is tried again and again, and is said once."""
    said = cache(lambda name, faults: said_shortly(faults, callees_of(name)))
    return [Tried(each, said(each.request_class, each.hypothesis)) for each in summaries]
