"""Sends recorded requests at the times at which they are due, and measures what comes.

Two targets are asked in turns: each is sent the same requests, one right after the other, in an
order that is drawn anew each time, so that neither is always second.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from ldfi.errors import InvalidReplay, Unreachable
from ldfi.scenarios.replay import UNREACHABLE, Failures, Missed
from ldfi.scenarios.replays.arrivals import Stretch, arrivals
from ldfi.scenarios.replays.connections import SWEEP, Connections, Job, TargetAddress
from ldfi.scenarios.replays.intervals import quantile
from ldfi.scenarios.replays.prepared import Prepared
from ldfi.scenarios.replays.series import UNANSWERED, Series

TRACED: Final = 50
"""Requests of each class and target, after the warm-up, whose traces are asked for."""
YIELD: Final = 16
"""Requests sent at once, where we are late, before answers are read."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send, and how. ``stretches``: for each target; the first ``warm_up`` seconds are cut
    off. ``writes``: share of requests that change something; None: as they were recorded.
    ``patience``: seconds for one whole answer. ``connections``: to each target, at most."""

    requests: Sequence[Prepared]
    stretches: tuple[Stretch, ...]
    warm_up: float = 0.0
    writes: float | None = None
    connections: int = 200
    patience: float = 10.0
    seed: int = 0

    @property
    def seconds(self) -> float:
        """Return how long requests are due."""
        return sum(each.seconds for each in self.stretches)

    @property
    def due(self) -> float:
        """Requests a second for each target, on average."""
        return sum(each.requests for each in self.stretches) / self.seconds

    def sequence(self) -> Iterator[Prepared]:
        """Draw requests for ever, as often as each was recorded, in the mix that is asked for."""
        rng = random.Random(self.seed)
        kinds = [[e for e in self.requests if e.safe], [e for e in self.requests if not e.safe]]
        if self.writes is None:
            groups, shares = [list(self.requests)], [1.0]
        else:
            groups, shares = kinds, [1 - self.writes, self.writes]
            if any(share > 0 and not group for group, share in zip(groups, shares, strict=True)):
                raise InvalidReplay("the mix asks for reads or writes of which none were recorded")
        weights = [[each.weight for each in group] for group in groups]
        while True:
            which = rng.choices(range(len(groups)), shares)[0]
            yield rng.choices(groups[which], weights[which])[0]


class TargetLoad:
    """What is sent to one target, and what came of it."""

    def __init__(
        self, name: str, origin: TargetAddress, load: Load, headers: Mapping[str, str]
    ) -> None:
        self.name = name
        self.origin = origin
        self.series: dict[str, Series] = {}
        self.failures = Failures()
        self.traces: dict[str, list[str]] = {}
        self.answered = 0
        self.last = 0.0
        self.pool = Connections(origin, load.connections, load.patience)
        self._warm_up = load.warm_up
        self._headers = headers
        self._wires: dict[int, tuple[bytes, bytes]] = {}
        self._ids = random.Random()

    def send(self, each: Prepared, begun: float, at: float) -> None:
        """Send a request that was due ``at`` seconds after the run had begun."""
        series = self.series.setdefault(each.name, Series(each.name))
        place = len(series.due)
        series.due.append(at)
        series.seconds.append(UNANSWERED)
        trace = f"{self._ids.getrandbits(128):032x}"
        traces = self.traces.setdefault(each.name, [])
        traced = at >= self._warm_up and len(traces) < TRACED
        if traced:
            traces.append(trace)
        before, after = self._wire(each)
        mark = f"{trace}-{self._ids.getrandbits(64):016x}-{'01' if traced else '00'}\r\n\r\n"
        done = partial(self._done, each, series, place, begun + at)
        self.pool.start(
            Job(before + mark.encode() + after, begun + at, done, each.method == "HEAD")
        )

    def _wire(self, each: Prepared) -> tuple[bytes, bytes]:
        key = id(each)
        if key not in self._wires:
            self._wires[key] = each.wire(self.origin, self._headers)
        return self._wires[key]

    def _done(
        self,
        each: Prepared,
        series: Series,
        place: int,
        due: float,
        status: int | None,
        body: bytes,
    ) -> None:
        now = asyncio.get_running_loop().time()
        if status is None:
            why = body.decode(errors="replace")
            code = "timeout" if why.startswith("no whole answer") else UNREACHABLE
            missed: Missed | None = Missed(code, why)
        else:
            seconds = now - due
            series.seconds[place] = seconds
            self.answered += 1
            self.last = now
            text = body.decode(errors="replace") if each.reads_body else ""
            missed = each.assertion.missed(status, text, seconds)
        if missed is not None:
            series.failed[place] = missed.code
            self.failures.take(f"{each.method} {each.shown}", missed)


async def measure(load: Load, targets: Sequence[TargetLoad]) -> tuple[float, float]:
    """Send everything; says in how many seconds, and how late we were with one in a hundred.

    Raises Unreachable where a target gives no answer at all.
    """
    loop = asyncio.get_running_loop()
    for each in targets:
        await _reachable(each.origin)
    begun = loop.time() + 0.05
    lags: list[float] = []
    rng = random.Random(load.seed)
    sweeping = loop.create_task(_sweep(targets))
    both = [
        Stretch(s.seconds, s.begin * len(targets), s.end * len(targets)) for s in load.stretches
    ]
    requests = load.sequence()
    order: list[TargetLoad] = []
    request = next(requests)
    try:
        for number, at in enumerate(arrivals(both)):
            if not order:
                order, request = rng.sample(list(targets), len(targets)), next(requests)
            wait = begun + at - loop.time()
            if wait > 0 or number % YIELD == 0:
                await asyncio.sleep(max(0.0, wait))
            lags.append(loop.time() - begun - at)
            order.pop().send(request, begun, at)
        while not all(each.pool.settled for each in targets):
            await asyncio.sleep(SWEEP)
    finally:
        sweeping.cancel()
        for each in targets:
            await each.pool.close()
    for each in targets:
        if not each.answered and each.series:
            raise Unreachable(f"{each.origin.url} never answered; {each.failures.shown[0]}")
    lags.sort()
    seconds = max(load.seconds, *(each.last - begun for each in targets))
    return seconds, quantile(lags, 0.99) if lags else 0.0


async def _sweep(targets: Sequence[TargetLoad]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        for each in targets:
            each.pool.sweep(loop.time())
        await asyncio.sleep(SWEEP)


async def _reachable(origin: TargetAddress) -> None:
    try:
        async with asyncio.timeout(5.0):
            _, writer = await asyncio.open_connection(origin.host, origin.port)
    except (OSError, TimeoutError) as error:
        why = str(error) or "nobody answered within 5 s"
        raise Unreachable(f"nothing listens at {origin.url}: {why}") from error
    writer.close()
