"""Simulated programs: what an application does for one request, under faults, leaving spans behind.

Declared as call trees, or written as functions. Small enough to try every set of faults, rich
enough to hold what makes lineage hard: calls one after the other or side by side; critical,
optional, with a fallback, retried; callers that wait for ever or give up; errors and delays
anywhere; nature failing calls late, after they did their work; handlers that know some kinds of
failure only. The request fails on an error that reaches it, or when it takes longer than its
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.kinds import family, late
from ldfi.fit.protocol.notation import length_of
from ldfi.lineage.span import Span
from ldfi.testing.spans import span

DELAY, PATIENCE, BUDGET = 100_000, 1_000, 2_500
"""A delay outlasts every patience, and the budget; two timeouts fit into it, three do not."""


REFUSED, ANSWERED, GAVE_UP = "refused", "answered", "gave up"
"""How a call fails, as its caller sees it: nobody was there (an injected error); it was answered
with an error, because something failed in there; the caller's patience was over."""


ALL = (REFUSED, ANSWERED, GAVE_UP)
"""With these a step handles every failure."""


class CallFailed(Exception):  # noqa: N818 - reads as what it is
    """Raised to a function that made a call which failed, or which it gave up. Data: ``how``."""

    def __init__(self, point: str, how: str = "") -> None:
        super().__init__(point, how)
        self.how = how


class Unserved(Exception):  # noqa: N818 - reads as what it is
    """Raised where no call could be made at all; the request fails, as nothing expects this."""


@dataclass(frozen=True)
class Call:
    """A call of ``point``, and what the callee does for it: ``steps``, or ``does``, a function.

    ``parallel``: the steps begin at the same moment. ``impatient``: the caller gives up after
    :data:`PATIENCE`. ``library``: the client library that its span's scope names, if any.
    """

    point: str
    steps: tuple[Step, ...] = ()
    parallel: bool = False
    impatient: bool = False
    does: Callable[[Caller], object] | None = None
    library: str = ""


@dataclass(frozen=True)
class Step:
    """``mode``: critical, optional, fallback (``calls`` in turn until one succeeds), retry.

    ``masks``: the failures that an optional step or a fallback knows what to do about, by default
    all; with any other one the step fails. A kind of fault with no word of its own here is one.
    """

    mode: str
    calls: tuple[Call, ...]
    masks: tuple[str, ...] = ALL

    def handles(self, failure: str) -> bool:
        """Return whether it knows what to do about a failure."""
        return self.masks == ALL or failure in self.masks


Application = Call | Callable[["Caller"], object]
"""What is done for one request: a declared program, or a function that makes calls."""


class Caller:
    """What a function gets that serves a request: a way to make calls, one after the other."""

    def __init__(self, run: Run, above: str, start: int) -> None:
        self._run = run
        self._above = above
        self._clock = start

    @property
    def now(self) -> float:
        """Return the time in the world: Unix seconds, the same for the whole request."""
        return self._run.now

    @property
    def clock(self) -> int:
        """Return how long this request has taken so far, in the units of :data:`PATIENCE`."""
        return self._clock

    def call(
        self, point: str, does: Callable[[Caller], object] | None = None, *, impatient: bool = False
    ) -> None:
        """Call ``point``, which then ``does`` something. Raises CallFailed."""
        call = Call(point, impatient=impatient, does=does)
        failed, self._clock = self._run.call(call, self._above, self._clock)
        if failed:
            raise CallFailed(point, failed)

    def serve(self, does: Callable[[Caller], object]) -> tuple[bool, int]:
        """Run a function; returns whether it failed, and when it ended."""
        try:
            does(self)
        except (CallFailed, Unserved):
            return True, self._clock
        return False, self._clock


_FAILURES = {"error": REFUSED, "status:500": ANSWERED}
"""How kinds of fault look that look like one another's; every other looks like itself."""


@dataclass
class Run:
    """One execution under ``faults``: ``good``, and the spans it left.

    ``nature``: ``nature@POINT`` for every call that fails by itself, after it did its work.
    ``now``: what time it is in the world (Unix seconds). ``lags``: how much longer than one unit
    the callee of a point takes. ``draw_key`` seeds the lengths that are drawn; a second
    has 1,000 units.
    """

    faults: frozenset[str]
    nature: frozenset[str] = frozenset()
    spans: list[Span] = field(default_factory=list)
    good: bool = False
    now: float = 0.0
    lags: Mapping[str, int] = field(default_factory=dict)
    draw_key: str = ""

    def execute(self, application: Application) -> Run:
        """Serve one request; returns itself."""
        if not isinstance(application, Call):
            application = Call("root", does=application)
        failed, end = self._inside(application, "root", 1)
        self.good = not failed and end <= BUDGET
        self.spans.append(span("root", kind="server", at=(0, end), failed=failed))
        return self

    def _inside(self, call: Call, above: str, start: int) -> tuple[bool, int]:
        if call.does is not None:
            return Caller(self, above, start).serve(call.does)
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
        failure = ""
        for call in attempts:
            failure, start = self.call(call, above, start)
            if not failure or not step.handles(failure):
                break
        handled = step.mode == "optional" and step.handles(failure)
        return bool(failure) and not handled, start

    def _at_once(self, point: str) -> str:
        """Find the kind of fault by which a call fails at once; empty for none."""
        here = (each.partition("@") for each in sorted(self.faults))
        return next((k for k, _, at in here if at == point and not late(k)), "")

    def _hangs(self, point: str) -> int:
        """Find out for how long a call is delayed."""
        here = (Fault.parse(each) for each in self.faults if each.partition("@")[2] == point)
        lengths = (length_of(f, DELAY, self.draw_key) for f in here if family(f.kind) == "delay")
        return max(lengths, default=0)

    def call(self, call: Call, above: str, start: int) -> tuple[str, int]:
        """Make one call at ``start``; returns how it failed (empty: it did not), and when it
        ended."""
        name = str(len(self.spans))
        self.spans.append(span(name, above))  # holds the place, and the id
        where = len(self.spans) - 1
        fired, begun = "", start + 1 + self.lags.get(call.point, 0)
        at_once = self._at_once(call.point)
        if at_once:
            fired, failure, end = at_once, _FAILURES.get(at_once, at_once), begun
        else:
            length = self._hangs(call.point)
            if length:
                fired = "delay"
                begun += min(length, PATIENCE) if call.impatient else length
            if call.impatient and length >= PATIENCE:
                failure, end = GAVE_UP, begun
            else:
                failed, end = self._inside(call, name, begun)
                failed = failed or f"nature@{call.point}" in self.nature
                failure = ANSWERED if failed else ""
        if call.impatient and end > start + 1 + PATIENCE:
            failure, end = GAVE_UP, start + 1 + PATIENCE
        marks = {"fired": fired} if fired else {}
        marks |= {"library": call.library} if call.library else {}
        if failure == ANSWERED:
            marks["status"] = "500"
        self.spans[where] = span(
            name, above, at=(start, end), failed=bool(failure), point=call.point, **marks
        )
        return failure, end


def faults_of(points: list[str]) -> list[str]:
    """Return every fault at some points."""
    return [str(Fault(point, kind)) for point in points for kind in ("error", "delay")]


def points_of(program: Call) -> list[str]:
    """Return the points of a declared program."""
    found: list[str] = []
    pending = [program]
    while pending:
        call = pending.pop()
        inner = [c for step in call.steps for c in step.calls]
        found += [c.point for c in inner]
        pending += inner
    return sorted(found)
