"""From classes and what is reported of them to the gist: the worst first, in people's names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ldfi.analysis.harmless import harmless
from ldfi.analysis.hints import Hint, fan_outs, is_probe, probes, retries, tried_below
from ldfi.analysis.losses import Loss, PassedOver, losses, lost_with, masked, passed_over
from ldfi.analysis.names import Names
from ldfi.analysis.report import ClassReport
from ldfi.analysis.silent_services import silent
from ldfi.analysis.summary import (
    ClassLine,
    LostWith,
    Proved,
    RedItem,
    ServiceCall,
    ServiceLine,
    Standing,
    Summary,
)
from ldfi.analysis.words import counted, listed
from ldfi.fit.protocol.points import Point
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.graph import ROOT
from ldfi.lineage.shapes import Shape

Judged = Sequence[tuple[RequestClass, ClassReport]]
"""Classes, each with what is reported of it."""


def summarize(judged: Judged, gaps: Iterable[Shape] = ()) -> Summary:
    """Return what matters most over all classes. Jobs, consumers and start-ups are left out if
    there are requests. ``gaps``: requests in no class, since their traces have gaps."""
    asked = [pair for pair in judged if not _is_job(pair[1])] or judged
    classes = [each for each, _ in asked]
    reports = [report for _, report in asked]
    names = Names.learned(shape.lineage for each, _ in judged for shape in each.shapes)
    found = losses(classes, names)
    ranking = lost_with(found)
    calls = service_calls(reports, names)
    unexplained = sum(loss.shape.count for loss in found if not loss.blamed)
    proved = harmless(classes, names)
    red = red_items(found, [*_hints(asked, gaps)], names)
    return Summary(
        headline=_headline(reports, ranking, passed_over(classes, names), names),
        lead=_lead(reports, ranking, unexplained, calls),
        missing=_missing(classes),
        masked=tuple(masked(found, classes, names)),
        harmless=proved,
        lost=ranking,
        unexplained=unexplained,
        red=red,
        classes=tuple(_line(*pair, names) for pair in asked),
        jobs=sum(report.traces for _, report in judged) - sum(each.traces for each in reports),
        services=standings(calls, {each.service for each in reports}, ranking, proved, red),
        calls=calls,
    )


def _is_job(report: ClassReport) -> bool:
    """Return whether no edge sees these arrive."""
    return any(condition["feature"] == "operation" for condition in report.predicate)


def service_calls(reports: Iterable[ClassReport], names: Names) -> tuple[ServiceCall, ...]:
    """Count who calls whom, over all classes; calls within a service are left out.

    Where another service than the one that was called goes on calling, it stands between them.
    """
    calls, failures = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for report in reports:
        for edge in report.edges:
            above = report.service if edge.above == ROOT else names.service(edge.above)
            caller = Point.parse(edge.point).caller
            caller = above if caller == "unknown" else caller
            calls[above, caller] += edge.calls
            calls[caller, names.service(edge.point)] += edge.calls
            failures[caller, names.service(edge.point)] += edge.failures
    return tuple(
        ServiceCall(above, below, count, failures[above, below])
        for (above, below), count in sorted(calls.items())
        if above != below
    )


def standings(
    calls: Iterable[ServiceCall],
    entered: Iterable[str],
    ranking: Iterable[LostWith],
    proved: Iterable[Proved],
    red: Iterable[RedItem],
) -> tuple[ServiceLine, ...]:
    """Return, for each service, the worst that is known of its failing."""
    calls = list(calls)
    known: dict[str, Standing] = dict.fromkeys(entered, "untried")
    known |= {name: "untried" for call in calls for name in (call.above, call.below)}
    known |= {call.below: "unclear" for call in calls if call.failures}
    known |= {name: "harmless" for each in proved for name in each.services}
    known |= {point: "silent" for each in red for point in each.points if point in known}
    known |= {each.service: "lost" for each in ranking}
    return tuple(ServiceLine(name, standing) for name, standing in sorted(known.items()))


def _hints(judged: Judged, gaps: Iterable[Shape]) -> Iterable[Hint]:
    for each, report in judged:
        singles = frozenset(fault.partition("@")[2] for fault in report.single_points)
        yield from probes(each, singles)
    yield from retries(shape for each, _ in judged for shape in each.shapes)
    yield from tried_below(shape for each, _ in judged for shape in each.shapes)
    yield from silent((each for each, _ in judged), gaps)
    for each, report in judged:
        if not is_probe(each):
            singles = frozenset(fault.partition("@")[2] for fault in report.single_points)
            yield from fan_outs((s for s in each.shapes if s.outcome == "good"), singles)


def _headline(
    reports: Sequence[ClassReport],
    ranking: tuple[LostWith, ...],
    over: Sequence[PassedOver],
    names: Names,
) -> str:
    total = sum(report.traces for report in reports)
    failed = sum(report.failed for report in reports)
    if not total:
        return "There is no trace in there to learn from."
    if ranking and ranking[0].seen:
        lost, worst = ranking[0].seen, ranking[0].service
        return f"{lost:,} of {counted(total, 'request')} were lost when {worst} failed"
    if ranking:
        worst = ranking[0].service
        return f"{failed:,} of {counted(total, 'request')} were lost; {worst} is suspected"
    if failed:
        return f"{failed:,} of {counted(total, 'request')} were lost; the traces do not say why"
    if over:
        first, how = over[0], " altogether" if over[0].altogether else ""
        of_all = f"{first.requests:,} of {counted(total, 'request')}"
        well = "the root spans say all was well" if first.unknown else "all of them went well"
        return f"{first.service} failed{how} in {of_all}, and {well}"
    needed = {s for report in reports for s in needs(report, names)}
    if needed:
        what = counted(len(needed), "service")
        return f"None of {counted(total, 'request')} failed; nothing ever stood in for {what}"
    return f"None of {counted(total, 'request')} failed"


def _lead(
    reports: Sequence[ClassReport],
    ranking: tuple[LostWith, ...],
    unexplained: int,
    calls: tuple[ServiceCall, ...],
) -> str:
    total = sum(report.traces for report in reports)
    failed = sum(report.failed for report in reports)
    refused = sum(report.refused for report in reports)
    touched = {name for call in calls for name in (call.above, call.below)}
    touched |= {report.service for report in reports}
    said = f"{counted(total, 'request')} touched {counted(len(touched), 'service')}"
    said += f"; {failed:,} were lost" if failed else "; none were lost"
    if ranking:
        said += f", {failed - unexplained:,} of them with {counted(len(ranking), 'service')}"
    if refused:
        said += f"; {refused:,} were refused (4xx)"
    return f"{said}. Nothing was injected by this command."


def _missing(classes: Iterable[RequestClass]) -> str:
    matter = [s for each in classes for s in each.shapes if s.outcome != "refused"]
    known, total = sum(shape.known for shape in matter), sum(shape.count for shape in matter)
    if known >= total:
        return ""
    if not known:
        return (
            "Outcomes are missing: an answer 200 may hide an error, so none is called harmless."
            " Give a file of outcomes as users saw them beside the traces."
        )
    return (
        f"Outcomes are missing of {total - known:,} of {counted(total, 'request')}: none of those"
        " is called harmless."
    )


def needs(report: ClassReport, names: Names) -> tuple[str, ...]:
    """Name the services that nothing was seen to stand in for, in one class."""
    points = (fault.partition("@")[2] for fault in report.single_points)
    return tuple(dict.fromkeys(names.service(point) for point in points))


def _line(each: RequestClass, report: ClassReport, names: Names) -> ClassLine:
    known = not _missing([each])
    went = "went well" if known else "ended without an error"
    parts = [f"{report.good:,} of {report.traces:,} {went}"]
    needed = needs(report, names)
    if needed:
        parts.append(f"needs {listed(needed)}, as far as is known")
    elif not any(support.points for support in report.supports):
        parts.append("no calls are recorded in what went well")
    for part in each.parts[:3]:
        called = listed(dict.fromkeys(map(names.service, sorted(part.points))), 2)
        parts.append(f"{part.share:.0%} of those in which nothing failed call {called}")
    pairs = sum(len(each) > 1 for each in report.hypotheses)
    if pairs:
        more = "more than " if report.more_hypotheses else ""
        parts.append(f"{more}{counted(pairs, 'set')} of failures might hurt together")
    if report.unfit:
        parts.append(f"not fit for exploration: {report.unfit}")
    said = "; ".join(parts) + "."
    return ClassLine(
        report.name, report.service, report.traces, report.good, report.failed > 0, said
    )


# What is red, and why: each point once, with everything there is to say about it.
def red_items(found: Iterable[Loss], hints: Sequence[Hint], names: Names) -> tuple[RedItem, ...]:
    """Gather losses and hints by call, as people name it, those with which most requests were lost
    first.

    Calls of which nothing is known but the same hints about several become one item.
    """
    found = list(found)
    lost = _lost(found, names)
    points: dict[str, set[str]] = defaultdict(set)
    why: dict[str, list[Hint]] = {name: [] for name in lost}
    for point in (point for loss in found for point in loss.points):
        points[names.call(point)].add(point)
    for hint in hints:
        for point in hint.points:
            points[names.call(point)].add(point)
        for name in dict.fromkeys(map(names.call, hint.points)):
            why.setdefault(name, []).append(hint)
    alone = {*lost, *(names.call(hint.points[0]) for hint in hints if len(hint.points) == 1)}
    groups: dict[tuple[str, tuple[int, ...]], list[str]] = defaultdict(list)
    for name, told in why.items():
        groups[name if name in alone else "", tuple(map(id, told))].append(name)
    items = [
        _item({p for name in group for p in points[name]}, lost.get(group[0]), why[group[0]], names)
        for group in groups.values()
    ]
    return tuple(sorted(items, key=lambda each: (-each.lost, each.points)))


def _item(
    points: set[str], lost: tuple[int, str] | None, why: Iterable[Hint], names: Names
) -> RedItem:
    count, said = lost or (0, "")
    reasons = [said] if said else []
    calls = {names.call(point) for point in points}
    services = sorted({names.service(point) for point in points})
    return RedItem(
        points=tuple(sorted(points)),
        name=min(calls) if len(calls) == 1 else listed(services),
        lost=count,
        reasons=tuple(dict.fromkeys([*reasons, *(hint.reason for hint in why)])),
        advice=tuple(dict.fromkeys(hint.advice for hint in why)),
    )


def _lost(found: Iterable[Loss], names: Names) -> dict[str, tuple[int, str]]:
    """Count and say for each call how many requests were lost with it."""
    seen, beside, told = Counter[str](), Counter[str](), Counter[str]()
    for loss in found:
        proved = {names.call(point) for service, point in loss.blamed if point != service}
        kind = seen if loss.seen else beside
        kind.update(dict.fromkeys(proved, loss.shape.count))
        told.update(dict.fromkeys(loss.points if not proved else (), loss.shape.count))
    return {
        name: (
            seen[name] + beside[name] + told[name],
            _said(seen[name], beside[name], told[name]),
        )
        for name in sorted(seen.keys() | beside.keys() | told.keys())
    }


def _said(seen: int, beside: int, told: int) -> str:
    parts = [f"{counted(seen, 'request')} lost when it failed and nothing else did"] * (seen > 0)
    parts += [
        f"{counted(beside, 'request')} lost when it failed beside others, or may have failed"
    ] * (beside > 0)
    if told:
        parts.append(
            f"{counted(told, 'request')} lost when it was made to fail, as the outcomes tell;"
            " the traces do not show the call"
        )
    return "; ".join(parts)
