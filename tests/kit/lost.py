"""Programs of which one needed call is lost to sight: what they export, by language and way.

Each serves ``GET /`` at ``front``, which calls ``ads`` (seen, optional) and needs ``stock``,
perhaps behind ``mid``. A *way* says what becomes of the needed call's spans; ``seen`` is the same
program with nothing lost. Languages differ in what their instrumentations write.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Final

from ldfi.lineage.operation import operation
from ldfi.lineage.span import Span

MS: Final = 1_000_000
BEGIN: Final = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Language:
    """What its instrumentations write of a call and of what is served."""

    name: str
    client: Mapping[str, str]
    server: Mapping[str, str]


LANGUAGES: Final = (
    Language(
        "python", {"method": "GET", "url": "http://{}:80/it"}, {"method": "GET", "path": "/it"}
    ),
    Language(
        "node",
        {"method": "GET", "host": "{}", "port": "80", "path": "/it"},
        {"method": "GET", "route": "/it", "path": "/it"},
    ),
    Language(
        "go",
        {"rpc": "grpc", "rpc_service": "shop.{}", "rpc_method": "It", "host": "{}"},
        {"rpc": "grpc", "rpc_service": "shop.{}", "rpc_method": "It"},
    ),
    Language("java", {"method": "GET", "url": "http://{}/it"}, {"method": "GET", "route": "/it"}),
)


@dataclass(frozen=True)
class Call:
    """The needed call in one request: who makes it and what, when it runs (ms into the request, and
    for how long), and below which span of the request (None: in a trace of its own)."""

    caller: str = "front"
    callee: str = "stock"
    at: float = 20
    takes: float = 30
    client: bool = True
    server: bool = True
    joined: bool = True
    parentless: bool = False


Way = Callable[[Call, random.Random], Iterator[Call]]


def _alone(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, joined=False)


def _late(call: Call, chance: random.Random) -> Iterator[Call]:
    yield replace(call, joined=False, at=call.at + chance.uniform(0, 20))


def _twice(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, joined=False, at=10, takes=15)
    yield replace(call, joined=False, at=40, takes=15)


def _sometimes(call: Call, chance: random.Random) -> Iterator[Call]:
    if chance.random() < 0.4:
        yield replace(call, joined=False)


def _half(call: Call, chance: random.Random) -> Iterator[Call]:
    yield replace(call, joined=chance.random() < 0.5)


def _deeper(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, caller="mid", joined=False)


def _no_client(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, client=False, joined=False)


def _no_client_deeper(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, caller="mid", client=False, joined=False)


def _no_client_half(call: Call, chance: random.Random) -> Iterator[Call]:
    lost = chance.random() < 0.5
    yield replace(call, client=not lost, joined=not lost)


def _no_server(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, server=False, joined=False)


def _parentless(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, client=False, parentless=True)


def _burst(call: Call, _: random.Random) -> Iterator[Call]:
    for number in range(5):
        yield replace(call, joined=False, at=10 + 8 * number, takes=6)


def _short(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, joined=False, takes=0.05)


def _other(call: Call, _: random.Random) -> Iterator[Call]:
    yield replace(call, callee="ads", joined=False)


def _both(call: Call, chance: random.Random) -> Iterator[Call]:
    yield from _alone(call, chance)
    yield from _no_client(replace(call, at=55, takes=10), chance)


def seen(call: Call, _: random.Random) -> Iterator[Call]:
    """Lose nothing."""
    yield call


WAYS: Final[Mapping[str, Way]] = {
    "a thread without the context": _alone,
    "a pool, whenever it has room": _late,
    "two calls of a queue's worker": _twice,
    "a timer, in some requests": _sometimes,
    "a pool, unless it runs inline": _half,
    "a thread of an inner service": _deeper,
    "a client that nobody instruments": _no_client,
    "a socket of an inner service": _no_client_deeper,
    "a client that is instrumented half of the time": _no_client_half,
    "a callee without spans, by a thread": _no_server,
    "an exporter that loses parents": _parentless,
    "a batch by several threads": _burst,
    "a very short call by a thread": _short,
    "a second call of what is seen elsewhere": _other,
    "a thread and a socket": _both,
}


def exported(
    language: Language, way: Way, requests: int = 60, *, every: float = 500, seed: int = 0
) -> Iterator[list[Span]]:
    """Export traces: of requests that take 80 ms and begin ``every`` so many ms on average."""
    chance, numbers = random.Random(f"{language.name} {seed}"), count(1)
    start = BEGIN
    for _ in range(requests):
        start += round(every * MS * chance.uniform(0.5, 1.5))
        yield from _request(language, list(way(Call(), chance)), start, numbers)


def beside(
    language: Language, kind: str, traces: int = 60, *, every: float = 500
) -> Iterator[list[Span]]:
    """Export what goes on by itself: a ``poller`` of front, or a ``probe`` of stock."""
    chance, numbers = random.Random(f"{language.name} {kind}"), count(1 << 40)
    start = BEGIN
    for _ in range(traces):
        start += round(every * MS * chance.uniform(0.5, 1.5))
        if kind == "poller":
            call = Call(callee="config", at=0, takes=5, server=False, joined=False)
            yield from _traces(language, call, start, numbers)
        else:
            path = {"method": "GET", "path": "/healthz"}
            what = operation("stock", "GET /healthz", "server", 1, False, tuple(path.items()))
            trace = _trace(numbers)
            yield [Span(trace, f"{next(numbers):016x}", None, start, start + 2 * MS, what)]


def _request(
    language: Language, calls: list[Call], start: int, numbers: count[int]
) -> Iterator[list[Span]]:
    trace = _trace(numbers)
    root, inner = (f"{next(numbers):016x}" for _ in range(2))
    spans = [
        _span(language, trace, root, None, "front", "", (start, start + 80 * MS)),
        *_made(language, trace, root, Call(callee="ads", at=2, takes=5), start, numbers),
    ]
    if any(call.caller == "mid" for call in calls):
        called = f"{next(numbers):016x}"
        when = start + 8 * MS, start + 75 * MS
        spans.append(_span(language, trace, called, root, "front", "mid", when))
        spans.append(_span(language, trace, inner, called, "mid", "", when))
    for call in calls:
        if not call.joined:
            yield from _traces(language, call, start, numbers)
            continue
        above = inner if call.caller == "mid" else root
        spans += _made(language, trace, above, call, start, numbers)
    yield spans


def _traces(
    language: Language, call: Call, start: int, numbers: count[int]
) -> Iterator[list[Span]]:
    yield _made(language, _trace(numbers), None, call, start, numbers)


def _made(
    language: Language, trace: str, above: str | None, call: Call, start: int, numbers: count[int]
) -> list[Span]:
    when = start + round(call.at * MS), start + round((call.at + call.takes) * MS)
    spans, parent = [], None if call.parentless else above
    if call.client:
        parent = f"{next(numbers):016x}"
        spans.append(_span(language, trace, parent, above, call.caller, call.callee, when))
    if call.server:
        own = f"{next(numbers):016x}"
        spans.append(_span(language, trace, own, parent, call.callee, "", when))
    return spans


def _span(
    language: Language,
    trace: str,
    own: str,
    parent: str | None,
    service: str,
    callee: str,
    when: tuple[int, int],
) -> Span:
    written = language.client if callee else language.server
    if not callee and service == "front":
        written = {"method": "GET", "path": "/", "route": "/"}
    fields = {name: value.format(callee or service) for name, value in written.items()}
    name = f"{fields.get('method', 'It')} {fields.get('route', '')}".strip()
    kind = "client" if callee else "server"
    what = operation(service, name, kind, 1, False, tuple(sorted(fields.items())))
    return Span(trace, own, parent, *when, what)


def _trace(numbers: count[int]) -> str:
    return f"{next(numbers):032x}"
