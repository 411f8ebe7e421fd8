"""``python -m benchmarks.callbacks [--json] [--seconds N]``: what holds the event loop up.

The service as ``ldfi serve`` makes it, in this process, over SQLite in a file: 200 request classes
with traffic, campaigns with 20 experiments armed at once, edges that poll, and somebody who asks
for pages of the API all the time, among them those that look at every class (what if, the gate,
certificates, evidence, the head). Each callback of the loop is measured by the CPU of its thread,
so that a busy machine does not count; those of the simulated world outside are left out. Python
collects garbage in the middle of callbacks: that counts, and is listed by itself as well.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from benchmarks.outcome import Row, Target, at_least, at_most, say
from ldfi.checker.head import SigningKey
from ldfi.experiments.api.app import create_app
from ldfi.experiments.cluster.garbage import short_collections
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.experiments.domain.campaign.campaign import Definition
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.scheduler.engine import Engine
from ldfi.lineage.span import Span
from ldfi.testing.programs import Call, Step
from ldfi.testing.world import World
from tests.checker.chain import key_pem

CLASSES, ARMED, SECONDS = 200, 20, 600.0
TARGET_MS: Final = 50.0
KNOWN_AFTER: Final = 25
"""Requests of each class before campaigns begin."""
OUTSIDE: Final = "world"
"""The name of tasks that are not the service's."""
TOKEN = "admin-of-the-benchmark"  # noqa: S105 - it opens nothing but this
SETTINGS = Settings(
    kinds=("error",),
    treatment=0.02,
    control=0.1,
    min_traffic=20,
    window=120.0,
    settle=1.0,
    follow=0.0,
    apart=5.0,
    concurrency=ARMED,
    member_budget=1_000_000,
)
PAGES = (
    "/status",
    "/classes",
    "/campaigns",
    "/campaigns/{campaign}/certificates",
    "/campaigns/{campaign}/evidence",
    "/head",
    "/experiments",
    "/findings",
    "/whatif?down=p3-2",
    "/maintenance/gate?down=p3-2",
    "/audit",
)


@dataclass
class Spent:
    """Callbacks by name: how many, the CPU of all (seconds), the longest ones."""

    count: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    cpu: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    longest: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    over: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))

    def note(self, name: str, seconds: float) -> None:
        """Note one callback."""
        self.count[name] += 1
        self.cpu[name] += seconds
        self.longest[name] = max(self.longest[name], seconds)
        self.over[name] += seconds * 1_000 > TARGET_MS

    def rows(self, most: int = 12) -> list[Row]:
        """List the longest."""
        return [
            {
                "callback": name,
                "times": self.count[name],
                "longest_ms": round(1_000 * self.longest[name], 1),
                "above_50_ms": self.over[name],
                "cpu_s": round(self.cpu[name], 2),
            }
            for name in sorted(self.longest, key=lambda each: -self.longest[each])[:most]
        ]


@dataclass
class Found:
    """Callbacks, collections of garbage, how many experiments were armed at once, and pages."""

    spent: Spent = field(default_factory=Spent)
    garbage: Spent = field(default_factory=Spent)
    armed: int = 0
    pages: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PAGES, 0))


class Deferred:
    """The engine as the world sees it: what arrives does so in callbacks of the service."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.board = engine, engine.board
        self._loop = asyncio.get_running_loop()

    def receive_spans(self, spans: Iterable[Span], now: float) -> None:
        """Take spans in, in a callback of its own."""
        self._loop.call_soon(self.engine.receive_spans, list(spans), now)

    def receive_outcomes(self, outcomes: Iterable[Outcome], now: float) -> None:
        """Take reports in, in a callback of its own."""
        self._loop.call_soon(self.engine.receive_outcomes, list(outcomes), now)

    def tick(self, now: float) -> None:
        """Do nothing: the service ticks by itself."""


def main() -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.callbacks")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, short_collections():
        found = asyncio.run(measured(f"sqlite:///{folder}/ldfi.db", given.seconds))
    targets: dict[str, Target] = {
        "the longest callback (ms of CPU)": at_most(
            round(1_000 * max(found.spent.longest.values()), 1), TARGET_MS
        ),
        "experiments armed at once, at most": at_least(found.armed, ARMED),
    }
    asked: list[Row] = [{"page": name, "times": many} for name, many in found.pages.items()]
    tables = {"callbacks": found.spent.rows(), "garbage": found.garbage.rows(), "pages": asked}
    return 0 if say(tables, targets, as_json=given.json) else 1


async def measured(database: str, seconds: float) -> Found:
    """Run the service for so long once its classes are known."""
    limits = Limits(max_concurrent=ARMED, members_per_hour=10**7, members_per_day=10**7)
    service = Service(
        Tokens(f"admin:{TOKEN}"), database, limits=limits, keys=(SigningKey(key_pem()),)
    )
    app = create_app(service)
    app.middleware_stack = app.build_middleware_stack()  # a server has this done before it listens
    asyncio.current_task().set_name(OUTSIDE)  # type: ignore[union-attr]
    async with app.router.lifespan_context(app):
        engine: Engine = app.state.engine
        world = World(app.state.database, programs(), engine=Deferred(engine))  # type: ignore[arg-type]
        while (
            min(traffic_seen(engine), default=0) < KNOWN_AFTER
            or len(engine.catalogue.classes) < CLASSES
        ):
            await asked(world)
        campaign = engine.scheduler.commands.start(Definition(SETTINGS), "benchmark", time.time())
        found = Found()
        restore = watch(found.spent, found.garbage)
        try:
            until = time.monotonic() + seconds
            found.armed = await lived(world, app, campaign.id, until, found.pages)
        finally:
            restore()
    return found


async def lived(world: World, app: Any, campaign: str, until: float, pages: dict[str, int]) -> int:
    """Let traffic go on, edges poll and somebody look; say how many were armed at once at most."""
    armed = 0
    transport = httpx.ASGITransport(app)
    headers = {"authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://service/api/v1", headers=headers, timeout=600
    ) as client:
        looking = asyncio.create_task(_look(client, campaign, pages), name="the API")
        while time.monotonic() < until:
            await asked(world)
            armed = max(armed, len(world.engine.board.armed()))
        looking.cancel()
        await asyncio.wait({looking})
    return armed


async def asked(world: World) -> None:
    """Have each class asked for once."""
    for edge in world.edges:
        world.now = time.time()
        edge.poll(world.engine, world.now)
    for number, path in enumerate(world.programs):
        world.now = time.time()
        world._request(path)
        if number % 4 == 3:
            await asyncio.sleep(0)
    await asyncio.sleep(0.05)


async def _look(client: httpx.AsyncClient, campaign: str, pages: dict[str, int]) -> None:
    while True:
        for page in PAGES:
            await asyncio.sleep(0.5)
            answer = await client.get(page.format(campaign=campaign))
            answer.raise_for_status()
            pages[page] += 1


def programs() -> dict[str, Call]:
    """Make an application of 200 routes, each with calls that are optional, needed, or stood in
    for."""
    rng, made = random.Random(0), {}
    for number in range(CLASSES):
        steps = [Step("critical", (Call(f"p{number}-0"),))]
        for call in range(1, 7):
            name = f"p{number}-{call}"
            kind = rng.choice(["optional", "fallback"])
            calls = (Call(name), Call(f"{name}b")) if kind == "fallback" else (Call(name),)
            steps.append(Step(kind, calls))
        made[f"/{_letters(number)}/view"] = Call("root", tuple(steps))
    return made


def _letters(number: int) -> str:
    """Name a page without a figure in it, which would be taken for a parameter."""
    return "page" + "".join(chr(97 + digit) for digit in divmod(number, 26))


def traffic_seen(engine: Engine) -> list[int]:
    """Count the requests that were seen of each class."""
    return [each.traffic.good for each in engine.catalogue.classes.values()]


def watch(spent: Spent, garbage: Spent) -> Callable[[], None]:
    """Measure every callback of event loops from now on, and how long garbage is collected;
    return what ends that."""
    real, began = asyncio.Handle._run, 0.0

    def collected(phase: str, info: dict[str, int]) -> None:
        nonlocal began
        if phase == "start":
            began = time.thread_time()
        else:
            garbage.note(f"generation {info['generation']}", time.thread_time() - began)

    def timed(handle: asyncio.Handle) -> Any:
        began = time.thread_time()
        name = _name(handle)
        try:
            return real(handle)
        finally:
            if name != OUTSIDE:
                spent.note(name, time.thread_time() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign,assignment]
    gc.callbacks.append(collected)

    def restore() -> None:
        asyncio.Handle._run = real  # type: ignore[method-assign]
        gc.callbacks.remove(collected)

    return restore


def _name(handle: asyncio.Handle) -> str:
    callback = handle._callback  # type: ignore[attr-defined]
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        if owner.get_name() in {OUTSIDE, "the API"}:
            page = _page(owner.get_coro())
            return page or owner.get_name()
        return getattr(owner.get_coro(), "__qualname__", "task")
    return getattr(callback, "__qualname__", repr(callback))


def _page(coroutine: object) -> str:
    """Find what the API is at, by the innermost function of ours that awaits."""
    found = ""
    inner: Any = coroutine
    while inner is not None:
        code = getattr(inner, "cr_code", None)
        if code is not None and "/experiments/api/" in code.co_filename:
            found = f"API: {code.co_name}"
        inner = getattr(inner, "cr_await", None)
    return found


if __name__ == "__main__":
    sys.exit(main())
