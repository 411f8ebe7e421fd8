"""Simulated programs: random call trees that run under faults and leave spans behind.

Small enough to try every set of faults, rich enough to hold what makes lineage hard: calls one
after the other or side by side; critical, optional, with a fallback, retried; callers that wait
for ever or give up; errors and delays anywhere; nature failing calls late, after they did their
work. The request fails on an error that reaches it, or when it takes longer than its budget.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from ldfi.fit.faults import Fault
from ldfi.lineage.span import Span
from tests.lineage.spans import span

DELAY, PATIENCE, BUDGET = 100_000, 1_000, 2_500
"""A delay outlasts every patience, and the budget; two timeouts fit into it, three do not."""


@dataclass(frozen=True)
class Call:
    point: str
    steps: tuple[Step, ...] = ()
    parallel: bool = False
    impatient: bool = False


@dataclass(frozen=True)
class Step:
    """``mode``: critical, optional, fallback (``calls`` in turn until one succeeds), retry."""

    mode: str
    calls: tuple[Call, ...]


@dataclass
class Run:
    """One execution: ``good``, and the spans it left."""

    faults: frozenset[str]
    nature: frozenset[str] = frozenset()
    spans: list[Span] = field(default_factory=list)
    good: bool = False

    def execute(self, program: Call) -> Run:
        failed, end = self._inside(program, "root", 1)
        self.good = not failed and end <= BUDGET
        self.spans.append(span("root", kind="server", at=(0, end), failed=failed))
        return self

    def _inside(self, call: Call, above: str, start: int) -> tuple[bool, int]:
        ends, clock, broken = [start], start, False
        for step in call.steps:
            failed, end = self._step(step, above, start if call.parallel else clock)
            clock = end
            ends.append(end)
            if failed:
                broken = True
                if not call.parallel:
                    break
        return broken, max(ends)

    def _step(self, step: Step, above: str, start: int) -> tuple[bool, int]:
        attempts = step.calls * 2 if step.mode == "retry" else step.calls
        failed = True
        for call in attempts:
            failed, start = self._call(call, above, start)
            if not failed:
                break
        return failed and step.mode != "optional", start

    def _call(self, call: Call, above: str, start: int) -> tuple[bool, int]:
        name = str(len(self.spans))
        self.spans.append(span(name, above))  # holds the place, and the id
        where = len(self.spans) - 1
        fired, begun = "", start + 1
        if f"error@{call.point}" in self.faults:
            fired, failed, end = "error", True, begun
        else:
            if f"delay@{call.point}" in self.faults:
                fired, begun = "delay", begun + (PATIENCE if call.impatient else DELAY)
            if fired and call.impatient:
                failed, end = True, begun
            else:
                failed, end = self._inside(call, name, begun)
                failed = failed or f"nature@{call.point}" in self.nature
        if call.impatient and end > start + 1 + PATIENCE:
            failed, end = True, start + 1 + PATIENCE
        marks = {"fired": fired} if fired else {}
        self.spans[where] = span(
            name, above, at=(start, end), failed=failed, point=call.point, **marks
        )
        return failed, end


def faults_of(points: list[str]) -> list[str]:
    return [str(Fault(point, kind)) for point in points for kind in ("error", "delay")]


@st.composite
def programs(draw: st.DrawFn, points: int) -> Call:
    """A program of at most ``points`` points, each called from one place."""
    names = [f"p{i}" for i in range(points)]
    return Call("root", draw(_steps(names, depth=3)), draw(st.booleans()))


@st.composite
def _steps(draw: st.DrawFn, names: list[str], depth: int) -> tuple[Step, ...]:
    steps = []
    while names and depth and (draw(st.booleans()) or depth == 3):
        mode = draw(st.sampled_from(["critical", "optional", "fallback", "retry"]))
        many = 2 if mode == "fallback" and len(names) > 1 else 1
        calls: list[Call] = []
        while names and len(calls) < many:
            point = names.pop(0)
            inner = draw(_steps(names, depth - 1))
            calls.append(Call(point, inner, draw(st.booleans()), draw(st.booleans())))
        steps.append(Step(mode, tuple(calls)))
    return tuple(steps)


def points_of(program: Call) -> list[str]:
    """The points of a program."""
    found: list[str] = []
    pending = [program]
    while pending:
        call = pending.pop()
        inner = [c for step in call.steps for c in step.calls]
        found += [c.point for c in inner]
        pending += inner
    return sorted(found)


def sets_of(items: list[str]) -> st.SearchStrategy[frozenset[str]]:
    """Any set of some items."""
    return st.frozensets(st.sampled_from(items)) if items else st.just(frozenset())
