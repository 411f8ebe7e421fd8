"""What is odd about how calls are made, seen in the call trees alone.

Of each shape of requests one tree is looked at; it stands for all of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from ldfi.analysis.suspects import suspected
from ldfi.analysis.words import counted
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.evidence import walk
from ldfi.lineage.shapes import Shape
from ldfi.lineage.tree import Call

MANY = 3
"""Calls side by side, or requests with retries, from which on something is said about them."""

_PROBE = re.compile(
    r"(^|/)(ready|readyz|readiness|live|livez|liveness|health|healthz|healthcheck|startupz"
    r"|grpc\.health\.v1\.Health/Check)(/(ready|readiness|live|liveness|db|full))?/?$"
)


@dataclass(frozen=True, slots=True)
class Hint:
    """What is odd about some points, and what to do about it."""

    points: tuple[str, ...]
    reason: str
    advice: str


def is_probe(each: RequestClass) -> bool:
    """Return whether requests of a class ask whether a service is ready or alive."""
    features = each.shapes[0].features
    path = features.get("route") or features.get("path") or ""
    return _PROBE.search(path) is not None


def probes(each: RequestClass, single_points: frozenset[str]) -> Iterator[Hint]:
    """Find leaves of the call tree with which a probe falls: points that it needs, or failed with,
    and that make no calls themselves."""
    if not is_probe(each):
        return
    calls = [call for shape in each.shapes for call in walk(shape.lineage.tree.calls)]
    inner = {call.point for call in calls if call.calls}
    failed: Counter[str] = Counter()
    for shape, points in suspected(each):
        failed.update(dict.fromkeys(points, shape.count))
    for point in sorted({call.point for call in calls} - inner):
        if point in single_points or failed[point]:
            seen = f" and failed {failed[point]:,} of {each.traces:,} times with it"
            yield Hint(
                (point,),
                f"the probe {each.name} of {each.service} asks it{seen if failed[point] else ''}:"
                f" if it falls, every {each.service} is taken out of service",
                f"Let the probe look at {each.service} alone.",
            )


def retries(shapes: Iterable[Shape]) -> Iterator[Hint]:
    """Find points that were called again after they had failed, and never with success.

    Not those that are called as often where all goes well, or side by side: several things are
    asked for there.
    """
    shapes = list(shapes)
    usual = _usual_times(shapes)
    tried, helped = Counter[str](), set[str]()
    for shape in shapes:
        again: set[str] = set()
        for siblings in _siblings(shape.lineage.tree.calls):
            for call in _after_a_failure(siblings, usual):
                again.add(call.point)
                helped.update(() if call.failed else (call.point,))
        tried.update(dict.fromkeys(again, shape.count))
    for point, requests in sorted(tried.items()):
        if point not in helped and requests >= MANY:
            yield Hint(
                (point,),
                f"in {counted(requests, 'request')} it was called again after it had failed,"
                " and that never helped",
                "Retry less, or later, or not at all.",
            )


def tried_below(shapes: Iterable[Shape]) -> Iterator[Hint]:
    """Find calls that their callee answered several times: something that leaves no spans, a proxy
    or a client, tried again within one call."""
    most, requests, failed = Counter[str](), Counter[str](), Counter[str]()
    for shape in shapes:
        several = [c for c in walk(shape.lineage.tree.calls) if len(c.attempts) > 1]
        requests.update(dict.fromkeys({call.point for call in several}, shape.count))
        for call in several:
            most[call.point] = max(most[call.point], len(call.attempts))
            failed[call.point] += shape.count * sum(each is True for each in call.attempts)
    for point, times in sorted(most.items()):
        ended = (
            f"{failed[point]:,} of these attempts failed"
            if failed[point]
            else ("how these attempts ended they do not say")
        )
        yield Hint(
            (point,),
            f"in {counted(requests[point], 'request')} one call of it was answered up to {times}"
            f" times, as if something between had tried again; {ended}",
            "Look for retries of a proxy or a client library: they multiply load when it fails.",
        )


def fan_outs(shapes: Iterable[Shape], single_points: frozenset[str]) -> Iterator[Hint]:
    """Find calls made side by side of which each is needed: nothing was seen to stand in."""
    width, points = Counter[str](), defaultdict[str, set[str]](set)
    for shape in shapes:
        for siblings in _siblings(shape.lineage.tree.calls):
            for together in _side_by_side(siblings):
                needed = [call for call in together if call.point in single_points]
                if len(needed) >= MANY:
                    caller = needed[0].service
                    width[caller] = max(width[caller], len(needed))
                    points[caller].update(call.point for call in needed)
    for caller, found in sorted(points.items()):
        yield Hint(
            tuple(sorted(found)),
            f"{caller} makes up to {width[caller]} calls side by side and needs every one:"
            " nothing was seen to stand in",
            "Give it a fallback: a default, a cached answer, or a part left out.",
        )


def _siblings(calls: tuple[Call, ...]) -> Iterator[list[Call]]:
    pending = [calls]
    while pending:
        waited = [call for call in pending.pop() if not call.detached]
        if waited:
            yield waited
        pending.extend(call.calls for call in waited)


def _usual_times(shapes: Iterable[Shape]) -> Counter[str]:
    """Point → how often one caller calls it at most, if each call succeeds."""
    usual: Counter[str] = Counter()
    for shape in shapes:
        for siblings in _siblings(shape.lineage.tree.calls):
            failed = {call.point for call in siblings if call.failed}
            usual |= Counter(call.point for call in siblings if call.point not in failed)
    return usual


def _after_a_failure(siblings: list[Call], usual: Counter[str]) -> Iterator[Call]:
    """List calls that began when one to the same point had failed."""
    calls: dict[str, list[Call]] = defaultdict(list)
    for call in siblings:
        calls[call.point].append(call)
    for point, made in calls.items():
        failed = [call.end for call in made if call.failed]
        one_by_one = all(a.end <= b.start for a, b in pairwise(made))
        if failed and one_by_one and len(made) > usual[point]:
            yield from (call for call in made if call.start >= min(failed))


def _side_by_side(siblings: list[Call]) -> Iterator[list[Call]]:
    """List the largest groups of calls that were all going on at some moment."""
    active: list[Call] = []
    first_end = float("inf")
    for call in sorted(siblings, key=lambda each: each.start):
        if first_end <= call.start:
            yield active
            active = [each for each in active if each.end > call.start]
            first_end = min((each.end for each in active), default=float("inf"))
        active.append(call)
        first_end = min(first_end, call.end)
    yield active
