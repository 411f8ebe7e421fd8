"""``ldfi analyze``: what trace files say about the requests in them, without injecting anything.

Read, assemble, learn, find the classes, and for each class solve its failure equation: the sets
of faults that no good request has acquitted yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from ldfi.analysis.collect import Collected, Progress, collect
from ldfi.analysis.narrative import summarize
from ldfi.analysis.reasoning import report_on
from ldfi.analysis.report import Analysis
from ldfi.analysis.words import counted
from ldfi.lineage.class_assignment import ClassAssignment
from ldfi.lineage.classes import discover
from ldfi.lineage.lineage import Lineage
from ldfi.lineage.renaming import learned_names, renamed
from ldfi.lineage.shapes import Shapes
from ldfi.lineage.sightings import Proposal, Sightings
from ldfi.lineage.unseen import Unseen


def analyze(
    paths: Iterable[Path],
    max_size: int = 2,
    class_by: Sequence[str] = (),
    progress: Progress | None = None,
) -> Analysis:
    """Analyse files and folders of traces.

    ``class_by``: request features (``query.page``, ``header.x-device-type``) that tell classes
    apart in any case. Raises OSError for a path that does not exist, never for its contents.
    """
    collected = collect(paths, progress)
    shapes = collected.shapes if len(collected.shapes) else collected.holed
    points = {p for shape in shapes for p in {*shape.lineage.called, *shape.lineage.callees}}
    callees = {p: who for shape in shapes for p, who in shape.lineage.callees.items()}
    names = learned_names(points, callees)
    if names:
        shapes = shapes.renamed(lambda run: renamed(run, names))
    serving = collected.sightings.serving
    asked = [s for s in placed(shapes) if not s.lineage.loose or s.lineage.service not in serving]
    judged = [(each, report_on(each, max_size)) for each in discover(asked, class_by)]
    return Analysis(
        spans=collected.spans,
        traces=collected.traces,
        outcomes=collected.outcomes,
        files=collected.files,
        skipped=_skipped(collected),
        unread=collected.unread,
        max_size=max_size,
        gist=summarize(judged, collected.holed if len(collected.shapes) else ()),
        classes=tuple(report for _, report in judged),
        notes=tuple(_notes(collected, shapes)),
    )


def placed(shapes: Shapes) -> Shapes:
    """Give requests the templates that their paths have among all of them."""
    placing, mixed = ClassAssignment(), [*shapes]
    Random(0).shuffle(mixed)  # as they come in traffic, not one user's after another's
    for shape in mixed:
        run, support = shape.lineage, shape.lineage.support if shape.teaches else None
        for _ in range(min(shape.count, _TELLS)):
            placing.learn(run.service, run.features, support)
    for shape in shapes:
        placing.look(shape.lineage.service, shape.features)

    def where(run: Lineage) -> Lineage:
        features = placing.features(run.service, run.features)
        return run if features is run.features else replace(run, features=features)

    return shapes.renamed(where)


_TELLS = 100
"""Requests of one shape that say all that any number of them would."""


def _skipped(collected: Collected) -> dict[str, int]:
    skipped = dict(sorted(collected.skipped.items()))
    if len(collected.shapes) and len(collected.holed):
        skipped["trace with gaps"] = sum(shape.count for shape in collected.holed)
    return skipped


def _notes(collected: Collected, shapes: Shapes) -> Iterable[str]:
    if shapes is not collected.shapes and not len(collected.shapes) and len(collected.holed):
        yield "Every trace has gaps (spans whose parents are missing): supports may be too small."
    yield from loose_calls(collected.sightings)
    for service, requests in sorted((+collected.foreign).items()):
        yield (
            f"{counted(requests, 'request')} of {service} name a parent that is in no file: whoever"
            " calls it exports nothing, or samples by itself. What it does besides is not known;"
            " where it stamps traceparent …-00, set OTEL_TRACES_SAMPLER=always_on behind it."
        )
    for service, requests in sorted(collected.rejoined.items()):
        yield (
            f"Spans of {service} name no parents in {counted(requests, 'request')}: they were put"
            " under the calls around them."
        )
    for service, requests in sorted(collected.parentless.items()):
        yield (
            f"Spans of {service} name no parents in {counted(requests, 'request')}, and no single"
            " call fits: what it does there is not known. Update its exporter, or let it read the"
            " traceparent header."
        )
    if collected.timeless:
        yield (
            f"{counted(collected.timeless, 'span')} did not say when they began: what came first,"
            " how long it took and what was waited for is not known of them."
        )
    if collected.second_parents:
        yield (
            f"{counted(collected.second_parents, 'span')} named more than one parent: the first is"
            " taken, what the others waited for is not known."
        )
    if collected.traces and not collected.outcomes:
        yield (
            "Outcomes are taken from the traces' own root spans. A status of 200 may hide an"
            " error: give a file of outcomes as users saw them beside the traces."
        )
    if shapes.overflow:
        yield f"{shapes.overflow} requests are left out: they had more than {shapes.limit} shapes."
    told = sum(1 for shape in shapes if shape.told and not shape.lineage.failed)
    if told:
        yield (
            "Some faults are only told of by the outcomes, not proved by the traces: whether"
            " they fired is not known (a circuit breaker may have kept the call from being made)."
        )


# Calls in traces of their own, and arrivals that no recorded call explains, as notes.
#
# A thread or a timer that loses the context leaves a CLIENT span without a parent; a caller that
# nobody instruments a SERVER span. Neither is a request that an edge sees arrive. Where such calls
# run within requests, they are proposed as theirs (:mod:`ldfi.lineage.sightings`).
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
