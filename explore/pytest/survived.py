"""Runs that a test has survived, kept from one exploration to the next: nobody pays for them twice.

Only what passed is kept: what failed is tried anew, so that a failure by chance does not stay, and
a finding is always seen. What is kept holds for one hash of everything that was declared (the
test's code, its bounds, the code of each service), and only where runs without faults, which are
always made anew, still call what they called then. Whatever is in play and was not declared, and
nothing is taken. Where something that was declared has changed, it is said what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ldfi.explore.pytest.run import Run
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import Point
from ldfi.lineage.digest import digest
from ldfi.lineage.lineage import Lineage, learn
from ldfi.lineage.operation import Operation, operation
from ldfi.lineage.requested_faults import as_asked
from ldfi.lineage.span import Span, Trace

FORMAT: Final = "ldfi-lessons/1"

UNREADABLE: Final = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What reading may raise of what somebody else has written."""

CHANGES: Final = 5
"""How many parts that have changed are named."""

_STATUS: Final = {None: 0, False: 1, True: 2}
_COMPARED: Final = ("called", "support", "relied_on", "fired", "survived", "timed_out", "callees")


@dataclass(frozen=True, slots=True)
class Basis:
    """What survived runs rest on. ``key``: a hash of all that was declared. ``declared``: the
    services whose code is in it. ``unmapped``: why others are not. ``names``: of services, by their
    addresses. ``lacking``: why nothing can be kept at all. ``parts``: what the key is a hash of,
    hashed by itself, under the name by which it is said that it has changed."""

    key: str = ""
    declared: frozenset[str] = frozenset()
    unmapped: Mapping[str, str] | None = None
    names: Mapping[str, str] | None = None
    lacking: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)

    def undeclared(self, lineage: Lineage, names: Mapping[str, str]) -> list[str]:
        """Return who was in play in a run and is not declared, and why."""
        known, why = dict(names) | dict(self.names or {}), self.unmapped or {}
        seen, own = set(), _by_hand(lineage)
        for each in lineage.called:
            point = Point.parse(each)
            seen.add(point.caller)
            if point.kind != "function" and each not in own:  # these are the caller's own
                callee = lineage.callees.get(each) or point.peer or each
                seen.add(known.get(callee, callee))  # spans know a database by its address
        return [f"{name} ({why.get(name, 'not declared')})" for name in seen - self.declared]


def _by_hand(lineage: Lineage) -> frozenset[str]:
    """Find the points that somebody wrote around code of the caller (``fit.point``): they name no
    peer, nobody answered, and no client library made a span of its own there. Of a call that a
    library made without saying to whom, it is not known what it reached."""
    spans: dict[str, set[str]] = {}
    for span in lineage.trace.spans:
        if span.operation.point is not None:
            spans.setdefault(span.operation.point, set()).add(span.operation.kind)
    own = (point for point, kinds in spans.items() if kinds == {"internal"})
    return frozenset(p for p in own if not Point.parse(p).peer) - lineage.callees.keys()


class SurvivedRuns:
    """What one test has survived: ``earlier`` as :meth:`document` wrote it, and what comes.

    ``basis`` is asked when the runs without faults are over, for fixtures start services.
    ``reason`` says why nothing is taken, or nothing is kept either; empty where nothing speaks
    against it, or there is nothing to take.
    """

    def __init__(self, basis: Callable[[], Basis], earlier: object = None) -> None:
        self.reason = ""
        self._barred = ""
        self._ask = basis
        self._basis = Basis()
        self._earlier = earlier if isinstance(earlier, dict) else {}
        self._called: list[str] = []
        self._names: dict[str, str] = {}
        self._before: dict[tuple[str, ...], Run] = {}
        self._runs: dict[tuple[str, ...], dict[str, Any]] = {}

    def begin(self, good: Sequence[Run]) -> None:
        """Take what is known already, if the runs without faults bear it out."""
        self._basis = basis = self._ask()
        self._called = sorted({point for run in good for point in run.lineage.called})
        for run in good:
            self._learn(run.lineage)
        undeclared = {each for run in good for each in basis.undeclared(run.lineage, self._names)}
        self._barred = basis.lacking or ", ".join(sorted(undeclared))
        self.reason = self._barred
        if not self._barred and self._earlier.get("format") == FORMAT:
            self.reason = self._changed()
            if not self.reason:
                self._recall(self._earlier.get("runs", ()))

    def _changed(self) -> str:
        """Return which of the bases of kept runs has changed; empty if none has."""
        before, now = self._earlier.get("parts"), self._basis.parts
        if self._earlier.get("key") == self._basis.key:
            same = self._earlier.get("called") == self._called
            return "" if same else "changed: what runs without faults call"
        before = before if isinstance(before, dict) else {}
        names = {*before, *now} if before else set()
        changed = sorted(name for name in names if before.get(name) != now.get(name))
        named = ", ".join(changed[:CHANGES]) or "what it rests on"
        more = f" and {len(changed) - CHANGES} more" if len(changed) > CHANGES else ""
        return f"changed: {named}{more}"

    def _recall(self, written: Iterable[Any]) -> None:
        try:
            self._runs = {_key(each["faults"]): each for each in written}
            self._before = {faults: _read(each) for faults, each in self._runs.items()}
        except UNREADABLE:
            self.forget()

    def find(self, faults: Iterable[Fault]) -> Run | None:
        """Find the run that survived these faults in an earlier exploration, if there is one."""
        return self._before.get(_key(faults))

    def keep(self, faults: Iterable[Fault], run: Run) -> None:
        """Keep a run, where it was survived and nothing in it is undeclared. What speaks against
        one that failed is kept no longer."""
        if self._barred or not self._basis.key:
            return
        self._learn(run.lineage)
        if run.passed is False:
            _drop(self._before, run.lineage.fired)
            _drop(self._runs, run.lineage.fired)
        if run.passed is not True or run.unseen or not run.lineage.fired:
            return
        written = _written(faults, run)
        if written is not None and not self._basis.undeclared(run.lineage, self._names):
            self._runs[_key(faults)] = written

    def forget(self) -> None:
        """Forget everything that was kept: a run of it, tried all the same, went another way."""
        self._before.clear()
        self._runs.clear()

    def document(self) -> dict[str, Any] | None:
        """Return what is to be kept, as JSON; None if nothing may be."""
        if self._barred or not self._basis.key:
            return None
        return {
            "format": FORMAT,
            "key": self._basis.key,
            "parts": dict(self._basis.parts),
            "called": self._called,
            "runs": [self._runs[faults] for faults in sorted(self._runs)],
        }

    def _learn(self, lineage: Lineage) -> None:
        named = {Point.parse(point).peer: name for point, name in lineage.callees.items()}
        self._names |= {peer: name for peer, name in named.items() if ":" in peer}


def same_way(kept: Run, made: Run) -> bool:
    """Return whether a run went as the one did that was kept."""
    return made.passed is True and not made.unseen and _alike(kept.lineage, made.lineage)


def _alike(a: Lineage, b: Lineage) -> bool:
    return all(getattr(a, name) == getattr(b, name) for name in _COMPARED)


def _drop(runs: dict[tuple[str, ...], Any], failed: Iterable[str]) -> None:
    """Drop survived runs whose set contains all faults of a failed one."""
    for faults in [each for each in runs if set(failed) <= {*each}]:
        del runs[faults]


def _key(faults: Iterable[Fault | str]) -> tuple[str, ...]:
    return tuple(sorted(map(str, faults)))


def _written(faults: Iterable[Fault], run: Run) -> dict[str, Any] | None:
    """Write a run; None where it would not be read back as it is."""
    spans = [_span(each) for each in run.lineage.trace.spans]
    written = {
        "faults": list(_key(faults)),
        "degraded": run.degraded,
        "errors": run.errors,
        "began": run.began,
        "ended": run.ended,
        "trace": run.lineage.trace_id,
        "spans": spans,
    }
    read = _read(written)
    if digest(read.lineage.trace) != digest(run.lineage.trace):
        return None
    operations = zip(read.lineage.trace.spans, run.lineage.trace.spans, strict=True)
    same = all(_means(a.operation) == _means(b.operation) for a, b in operations)
    return written if same and _alike(read.lineage, run.lineage) else None


def _read(kept: Mapping[str, Any]) -> Run:
    """Read what was written. Raises one of :data:`UNREADABLE` for anything else."""
    trace = str(kept["trace"])
    lineage = learn(Trace.of(trace, [_spanned(trace, each) for each in kept["spans"]]))
    if lineage is None:
        raise ValueError("a run without its root")
    return Run(
        passed=True,
        lineage=as_asked(lineage, map(Fault.parse, kept["faults"])),
        degraded=bool(kept["degraded"]),
        errors=int(kept["errors"]),
        began=float(kept["began"]),
        ended=float(kept["ended"]),
    )


def _span(span: Span) -> list[Any]:
    what = span.operation
    said = [what.service, what.name, what.kind, _STATUS[what.failed], what.detached, what.fields]
    return [span.span_id, span.parent_id, span.start, span.end, said, span.links]


def _spanned(trace: str, written: Sequence[Any]) -> Span:
    span_id, parent_id, start, end, said, links = written
    service, name, kind, status, detached, pairs = said
    known = tuple((str(key), str(value)) for key, value in pairs)
    what = operation(service, name, kind, status, False, known, detached)
    return Span(trace, span_id, parent_id, start, end, what, tuple(map(tuple, links)))


def _means(what: Operation) -> list[object]:
    return [getattr(what, each.name) for each in fields(what)]
