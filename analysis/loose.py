"""Calls in traces of their own, and arrivals that no recorded call explains, as notes.

A thread or a timer that loses the context leaves a CLIENT span without a parent; a caller that
nobody instruments a SERVER span. Neither is a request that an edge sees arrive. Where such calls
run within requests, they are proposed as theirs
(:mod:`ldfi.lineage.sightings`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ldfi.analysis.words import counted
from ldfi.lineage.sightings import Proposal, Sightings
from ldfi.lineage.unseen import Unseen


def loose_calls(sightings: Sightings) -> Iterator[str]:
    """Return which calls these are, and what share of all calls there."""
    figures = sightings.figures()
    yield from map(_said, (each for each in figures.proposals() if each.why == "loose"))
    for service in sorted(sightings.serving):
        arrivals = Unseen.of((g for g in figures.of(service).gaps if g.why == "arrival"), 0)
        if arrivals.gaps:
            advice = " ".join(_sentences(arrivals.advice()))
            yield f"Of requests of {service}, {arrivals.line}. {advice}"


def _said(each: Proposal) -> str:
    where = (
        "each while a request of it runs: perhaps its requests make them. Pass the context on to"
        " whatever makes them"
        if each.inside == each.calls
        else f"{each.inside:,} of them while a request of it runs"
    )
    certain = {"theirs": ", which is no chance", "apart": ", no more than by chance"}
    return (
        f"{counted(each.calls, 'call')} of {each.service} at {each.point} ran in traces of their"
        f" own, {where}{certain.get(each.belongs, '')}. They are not requests and in no class."
    )


def _sentences(texts: Iterable[str]) -> Iterator[str]:
    for each in texts:
        said = each.partition("; or say")[0]
        yield f"{said[:1].upper()}{said[1:]}."
