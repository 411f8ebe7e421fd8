"""Services by the requests that were lost with them, and losses that the answers did not show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ldfi.analysis.names import Names, means
from ldfi.analysis.summary import LostWith, Masked
from ldfi.analysis.suspects import broken, suspected
from ldfi.analysis.words import counted, listed
from ldfi.lineage.classes import RequestClass
from ldfi.lineage.evidence import doubted
from ldfi.lineage.shapes import Shape


@dataclass(frozen=True, slots=True)
class Loss:
    """Failed requests of one shape, and what is to blame."""

    shape: Shape
    blamed: tuple[tuple[str, str], ...]
    """Services to blame, each with the point at which; or the services of which only the outcomes
    say that they were made to fail. None where nothing says why."""
    seen: bool
    """Only one service is to blame, it failed for certain, and nothing else did."""

    @property
    def services(self) -> frozenset[str]:
        """Name the services to blame."""
        return frozenset(service for service, _ in self.blamed)

    @property
    def points(self) -> frozenset[str]:
        """Name the points to blame."""
        return frozenset(point for _, point in self.blamed)


def losses(classes: Iterable[RequestClass], names: Names) -> tuple[Loss, ...]:
    """Return the points to blame for each shape of failed requests."""
    return tuple(
        _loss(shape, points, names) for each in classes for shape, points in suspected(each)
    )


def _loss(shape: Shape, points: tuple[str, ...], names: Names) -> Loss:
    told = {names.told(fault) for fault in shape.told} - {""}
    if not points:
        return Loss(shape, tuple((name, name) for name in sorted(told)), seen=False)
    services = set(map(names.service, points))
    beside = {names.service(point) for point in broken(shape.lineage)} - services
    agreed = not told or any(means(name, service) for name in told for service in services)
    certain = not doubted(shape.lineage.tree)
    seen = len(services) == 1 and not beside and agreed and certain
    return Loss(shape, tuple((names.service(point), point) for point in points), seen)


def lost_with(found: Iterable[Loss]) -> tuple[LostWith, ...]:
    """Rank services by the requests lost with them: those that were seen, then the suspected; of
    equals the one that failed first more often, then the one that failed earlier."""
    seen, all_of_them, first = Counter[str](), Counter[str](), Counter[str]()
    points: dict[str, set[str]] = defaultdict(set)
    for loss in sorted(found, key=lambda each: each.shape.first):
        first.update({loss.blamed[0][0]: loss.shape.count} if loss.blamed else {})
        for service in dict.fromkeys(service for service, _ in loss.blamed):
            all_of_them[service] += loss.shape.count
            seen[service] += loss.shape.count * loss.seen
        for service, point in loss.blamed:
            points[service].add(point)
    listing = [
        LostWith(service, seen[service], total - seen[service], tuple(sorted(points[service])))
        for service, total in all_of_them.items()
    ]
    return tuple(
        sorted(listing, key=lambda each: (-each.seen, -each.suspected, -first[each.service]))
    )


def masked(found: Iterable[Loss], classes: Iterable[RequestClass], names: Names) -> list[Masked]:
    """Return failures that answers hid: called a success, or a refusal after a call had failed."""
    counts: Counter[tuple[tuple[str, ...], bool]] = Counter()
    where: dict[tuple[tuple[str, ...], bool], set[str]] = defaultdict(set)
    classes = list(classes)
    for refused, service, shape in (*_hidden(found), *_refusals(classes, names)):
        counts[service, refused] += shape.count
        where[service, refused].add(_path(shape))
    return [
        *(
            Masked(services, n, refused, _said(services, n, refused, where[services, refused]))
            for (services, refused), n in sorted(counts.items(), key=lambda c: (-c[1], c[0]))
        ),
        *(
            Masked((each.service,), each.unknown, False, each.says, lost=False)
            for each in passed_over(classes, names)
            if each.unknown
        ),
    ]


@dataclass(frozen=True, slots=True)
class PassedOver:
    """Failures of one service under roots that say that all was well."""

    service: str
    requests: int
    unknown: int
    """Of how many of them nobody wrote down what users saw."""
    altogether: bool
    """No call to it succeeded in them."""
    where: tuple[str, ...]

    @property
    def says(self) -> str:
        """Return the sentence on failures of which nothing else is known."""
        how = " altogether" if self.altogether else ""
        paths = listed(self.where, 2)
        count = counted(self.unknown, "request") + (f" of {paths}" if paths else "")
        return f"{self.service} failed{how} in {count}, and the root span says all was well"


def passed_over(classes: Iterable[RequestClass], names: Names) -> list[PassedOver]:
    """List services that failed in requests whose roots say that all was well, and were not asked
    again with success; first those that failed altogether, and in most requests."""
    found: dict[tuple[str, bool], list[Shape]] = defaultdict(list)
    for shape in (shape for each in classes for shape in each.shapes if shape.outcome == "good"):
        run = shape.lineage
        works = set(map(names.service, run.support))
        for service in {names.service(fault.partition("@")[2]) for fault in run.ends}:
            found[service, service not in works].append(shape)
    listing = [
        PassedOver(
            service,
            sum(shape.count for shape in shapes),
            sum(shape.count - shape.known for shape in shapes),
            altogether,
            tuple(sorted({_path(shape) for shape in shapes})),
        )
        for (service, altogether), shapes in found.items()
    ]
    return sorted(listing, key=lambda each: (not each.altogether, -each.requests, each.service))


def _hidden(found: Iterable[Loss]) -> Iterator[tuple[bool, tuple[str, ...], Shape]]:
    for loss in found:
        if loss.shape.hidden:
            yield False, tuple(sorted(loss.services)), loss.shape


def _refusals(
    classes: Iterable[RequestClass], names: Names
) -> Iterator[tuple[bool, tuple[str, ...], Shape]]:
    for shape in (shape for each in classes for shape in each.shapes):
        failed = broken(shape.lineage) if shape.outcome == "refused" else ()
        if failed:
            yield True, tuple(sorted(set(map(names.service, failed)))), shape


def _path(shape: Shape) -> str:
    features = shape.features
    path = features.get("route") or features.get("path") or features.get("operation") or ""
    return f"{features.get('method', '')} {path}".strip()


def _said(services: tuple[str, ...], requests: int, refused: bool, where: set[str]) -> str:
    paths = listed(sorted(where), 2)
    count = f"{counted(requests, 'request')} of {paths}" if paths else counted(requests, "request")
    if refused:
        return f"{count} were refused (4xx) after {listed(services)} had failed"
    blamed = f"lost with {listed(services)}" if services else "lost, nothing shows with what"
    return f"{count} were {blamed}, and the root span says all was well"
