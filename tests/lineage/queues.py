"""Programs with queues: what a request does, message by message, and the spans it would leave.

Services have clocks of their own. A message is consumed beside the request that sent it; the
request may wait for a reply, or for the consumer to be done in a way that leaves no span at all (a
future, a row that is polled for), or not. It waits at its end, for all that it waits for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

from ldfi.lineage.message_waits import SKEW
from ldfi.lineage.span import Span
from ldfi.testing.spans import span

MS = 1_000_000
LONG = 3 * SKEW // MS
"""Milliseconds that no difference of clocks explains."""


class Broken(Exception):  # noqa: N818 - reads as what it is
    """A call failed, and nobody catches that. ``at``: when."""

    def __init__(self, at: int) -> None:
        self.at = at


@dataclass(frozen=True)
class Ask:
    """A call that is waited for. ``heard``: within a consumer, the request waits for it to come."""

    point: str
    service: str
    ms: int
    optional: bool = False
    heard: bool = False


@dataclass(frozen=True)
class Pause:
    """Time passes."""

    ms: int


@dataclass(frozen=True)
class Reply:
    """A message to the service that the request entered, which waits for it."""

    point: str


@dataclass(frozen=True)
class Send:
    """A message. ``silent``: the request waits until its consumer is done, without a trace."""

    point: str
    service: str
    lag: int
    steps: tuple[Step, ...]
    silent: bool = False


Step = Ask | Pause | Reply | Send


@dataclass
class Run:
    """One request. ``clocks``: by how many nanoseconds each service's clock is ahead."""

    steps: tuple[Step, ...]
    faults: frozenset[str] = frozenset()
    clocks: Mapping[str, int] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    consumed: list[int] = field(default_factory=list)
    """When each consumer was done, by the true time."""
    good: bool = True
    end: int = 0
    _came: set[str] = field(default_factory=set)
    _waits: list[int] = field(default_factory=list)

    def execute(self) -> Run:
        """Serve the request; returns itself."""
        try:
            end = self._work(self.steps, "root", "api", 0)
        except Broken as broken:
            self.good, end = False, broken.at
        awaited = [_awaited(step) for step in _every(self.steps)]
        self.good = self.good and all(name in self._came for name in awaited if name)
        self.end = max([end, *self._waits])
        self._leave("root", None, "server", "api", 0, self.end)
        return self

    def _work(self, steps: tuple[Step, ...], above: str, service: str, now: int) -> int:
        for step in steps:
            if isinstance(step, Pause):
                now += step.ms * MS
            elif isinstance(step, Ask):
                now = self._ask(step, above, service, now)
            else:
                now = self._send(step, above, service, now)
        return now

    def _ask(self, step: Ask, above: str, service: str, now: int) -> int:
        failed = f"error@{step.point}" in self.faults
        done = now + step.ms * MS
        name = self._leave(step.point, above, "client", service, now, done, failed)
        if not failed:
            self._leave(f"{step.point}-server", name, "server", step.service, now, done)
            self._came.add(f"{step.point}-heard")
            if step.heard:
                self._waits.append(now)
        if failed and not step.optional:
            raise Broken(done)
        return done

    def _send(self, step: Send | Reply, above: str, service: str, now: int) -> int:
        sent = now + MS
        if f"error@{step.point}" in self.faults:
            self._leave(step.point, above, "producer", service, now, sent, failed=True)
            raise Broken(sent)
        name, taken = (
            self._leave(step.point, above, "producer", service, now, sent),
            f"{step.point}-taken",
        )
        if f"error@{taken}" in self.faults:
            return sent
        if isinstance(step, Reply):
            self._leave(taken, name, "consumer", "api", sent, sent + MS)
            self._waits.append(sent + MS)
            self._came.add(taken)
        else:
            self._consume(step, name, taken, sent + step.lag * MS)
        return sent

    def _consume(self, step: Send, name: str, taken: str, begun: int) -> None:
        try:
            done = self._work(step.steps, taken, step.service, begun) + MS
            self._came.add(f"{step.point}-done")
        except Broken as broken:
            done = broken.at
        self.consumed.append(done)
        if step.silent:
            self._waits.append(done)
        self._leave(taken, name, "consumer", step.service, begun, done)

    def _leave(
        self,
        name: str,
        above: str | None,
        kind: str,
        service: str,
        start: int,
        end: int,
        failed: bool = False,
    ) -> str:
        ahead = self.clocks.get(service, 0) + 10**18
        named = {"point": name} if kind in {"client", "producer", "consumer"} else {}
        at = (start + ahead, end + ahead)
        self.spans.append(span(name, above, kind, service, failed, at, **named))
        return name


def _awaited(step: Step) -> str:
    """Name what has to come for the request to go on; empty where that is nothing."""
    if isinstance(step, Reply):
        return f"{step.point}-taken"
    if isinstance(step, Ask) and step.heard:
        return f"{step.point}-heard"
    return f"{step.point}-done" if isinstance(step, Send) and step.silent else ""


def _every(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, Send):
            yield from _every(step.steps)


def points_of(steps: tuple[Step, ...]) -> list[str]:
    """List every point; what is consumed is one, too."""
    found = []
    for step in _every(steps):
        if not isinstance(step, Pause):
            found.append(step.point)
        if isinstance(step, Send | Reply):
            found.append(f"{step.point}-taken")
    return found


def relied_on(steps: tuple[Step, ...]) -> set[str]:
    """Find by trying: the points without which the request fails."""
    return {
        point
        for point in points_of(steps)
        if not Run(steps, frozenset({f"error@{point}"})).execute().good
    }


def alike(steps: tuple[Step, ...], run: Run) -> Iterator[tuple[Step, ...]]:
    """List the programs that leave the same spans: some may wait where this one does not."""
    for other in _waiting(steps):
        if Run(other, run.faults, run.clocks).execute().spans == run.spans:
            yield other


def _waiting(steps: tuple[Step, ...], within: bool = False) -> Iterator[tuple[Step, ...]]:
    if not steps:
        yield ()
        return
    first, rest = steps[0], steps[1:]
    heads: list[Step] = [first]
    if isinstance(first, Ask) and within and first.service == "api":
        heads = [first, replace(first, heard=True)]
    if isinstance(first, Send):
        heads = [
            replace(first, steps=inner, silent=silent)
            for inner in _waiting(first.steps, within=True)
            for silent in (False, True)
        ]
    yield from ((head, *tail) for tail in _waiting(rest, within) for head in heads)


@st.composite
def programs(draw: st.DrawFn, optional: bool = False) -> tuple[Step, ...]:
    """A program with queues in it: request-reply, fire and forget, pipelines, streams."""
    numbers = iter(range(100))
    return draw(_steps(numbers, 3, optional, replies=False))


@st.composite
def _steps(
    draw: st.DrawFn, numbers: Iterator[int], depth: int, optional: bool, replies: bool
) -> tuple[Step, ...]:
    services = st.sampled_from(["api", "worker", "other"])
    steps: list[Step] = []
    for kind in draw(st.lists(st.sampled_from(["ask", "pause", "send"]), max_size=3)):
        name = f"p{next(numbers)}"
        if kind == "ask":
            may = optional and draw(st.booleans())
            steps.append(Ask(name, draw(services), draw(st.integers(1, 30)), may))
        elif kind == "pause":
            steps.append(Pause(draw(st.sampled_from([1, 20, LONG, 100 * LONG]))))
        elif depth:
            inner = draw(_steps(numbers, depth - 1, optional, replies=True))
            lag, silent = draw(st.sampled_from([0, 3, 40, LONG])), draw(st.booleans())
            # what a consumer sends to the service that waits is a reply, and drawn as one
            where = draw(services.filter(lambda each: not (replies and each == "api")))
            steps.append(Send(name, where, lag, inner, silent))
            # a consumer that goes on does so much later: lineage.message_waits has the reason
            steps += [Pause(2 * LONG)] if replies else []
    if replies and draw(st.booleans()):
        rest = draw(_steps(numbers, 0, optional, replies=False))
        steps += [Reply(f"p{next(numbers)}"), *((Pause(2 * LONG), *rest) if rest else ())]
    return tuple(steps)


CLOCKS = st.fixed_dictionaries(
    {name: st.integers(-SKEW // 2, SKEW // 2) for name in ("api", "worker", "other")}
)
