"""Running the devices: open-loop traffic, so that a slow application meets no mercy.

How much of it there is may be left to what the machine can serve (``share``): where healthy
requests already take half of a device's patience, faults that an application survives look as if
they hurt. It is measured before anything else, which is said once by a line of JSON on standard
output, and looked at as long as devices ask (``Pace``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

import httpx

from ldfi.demo.devices.fleet import Ask, Device, arrivals, ask, fleet
from ldfi.demo.devices.judge import judge
from ldfi.demo.devices.pace import LEAST, LOOK_SECONDS, Pace
from ldfi.demo.devices.report import Metric, Reporter
from ldfi.demo.limits import PATIENCE
from ldfi.demo.resolver import NamedTransport
from ldfi.demo.worlds import STREAMING, WORLDS

DEFAULT_RATES: Mapping[str, float] = STREAMING.rates
DEFAULT_DEVICES = 400

WARMING_SECONDS = 1.0
MEASURED_SECONDS = 2.0
AT_ONCE = 6
"""Requests in flight while we measure what the machine can serve: more than it has cores."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What the devices do. ``rates`` are requests per second by class, ``sampled`` a share of the
    traces. ``share``: of what the machine can serve is asked for at most; None asks for all.
    ``patience``: seconds after which a device gives up."""

    rates: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_RATES))
    devices: int = DEFAULT_DEVICES
    sampled: float = 0.5
    seed: int = 0
    share: float | None = None
    patience: float = PATIENCE

    def paced(self, capacity: float) -> float:
        """Return the share of the rates to begin with, where ``capacity`` requests of this mix are
        served per second."""
        wanted = sum(self.rates.values())
        if self.share is None or wanted <= self.share * capacity:
            return 1.0
        return max(LEAST, self.share * capacity / wanted)


class Crowd:
    """All devices together; counts what they saw by class and outcome."""

    def __init__(self, client: httpx.AsyncClient, traffic: Traffic, reporter: Reporter) -> None:
        self._client = client
        self._traffic = traffic
        self._reporter = reporter
        self._devices = fleet(traffic.devices)
        self._asking: set[asyncio.Task[None]] = set()
        self.seen: Counter[tuple[str, str]] = Counter()
        self.durations: dict[str, list[float]] = {kind: [] for kind in traffic.rates}
        self.pace = Pace(patience=traffic.patience)

    async def run(self) -> None:
        """Make traffic of every class, until cancelled."""
        traffic, looking = self._traffic, []
        if traffic.share is not None:
            self.pace.share = traffic.paced(await self.capacity())
            looking = [self._look()]
        asking = (self._arrive(*each) for each in traffic.rates.items() if each[1] > 0)
        await asyncio.gather(*asking, *looking)

    async def _look(self) -> None:
        """Say which share is asked for, and go on asking for less, or more again."""
        print(json.dumps({"share": round(self.pace.share, 3)}), flush=True)  # noqa: T201 - for whoever started us
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.pace.look()

    async def capacity(self) -> float:
        """Measure how many requests of the mix are served per second when some are always in
        flight."""
        start = time.monotonic() + WARMING_SECONDS
        end = start + MEASURED_SECONDS
        traffic, served = self._traffic, 0
        chance = random.Random(f"{traffic.seed}/capacity")
        kinds, weights = [*traffic.rates], [*traffic.rates.values()]

        async def insist() -> None:
            nonlocal served
            while time.monotonic() < end:
                (kind,) = chance.choices(kinds, weights)
                await self.use(chance.choice(self._devices), ask(kind, chance, traffic.sampled))
                served += start <= time.monotonic() < end

        await asyncio.gather(*(insist() for _ in range(AT_ONCE)))
        return served / MEASURED_SECONDS

    async def finish(self) -> None:
        """Wait for the answers to what has been asked."""
        if self._asking:
            await asyncio.wait(self._asking)

    async def _arrive(self, kind: str, rate: float) -> None:
        """Make requests of one class. Devices take turns, for nobody asks again at once: whoever
        judges devices by their first request would have to wait for it."""
        chance = random.Random(f"{self._traffic.seed}/{kind}")
        turns = cycle(chance.sample(self._devices, len(self._devices)))
        due, last = time.monotonic(), 0.0
        for moment, device in zip(arrivals(rate, chance), turns, strict=False):
            due, last = due + (moment - last) / self.pace.share, moment
            await asyncio.sleep(due - time.monotonic())
            request = self.use(device, ask(kind, chance, self._traffic.sampled))
            task = asyncio.create_task(request)
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def use(self, device: Device, wanted: Ask) -> None:
        """Make one request, judge the answer, report it."""
        session = device.session()
        start = time.monotonic()
        error = await self._error(device, wanted)
        duration = 1000 * (time.monotonic() - start)
        self.pace.saw(duration / 1000)
        self.seen[wanted.kind, error or "success"] += 1
        self.durations[wanted.kind].append(duration)
        self._reporter.add(
            Metric(
                device=device.device,
                member=device.member,
                trace_id=wanted.trace_id,
                session=session,
                outcome="failure" if error else "success",
                error_code=error,
                duration_ms=round(duration, 1),
            )
        )

    async def _error(self, device: Device, wanted: Ask) -> str | None:
        headers = {
            "x-device-id": device.device,
            "x-device-type": device.type,
            "traceparent": wanted.traceparent,
        }
        try:
            async with asyncio.timeout(self._traffic.patience):
                response = await self._client.get(wanted.path, headers=headers)
        except TimeoutError:
            return "timeout"
        except httpx.HTTPError:
            return "no_connection"
        return judge(wanted.kind, response.status_code, response.content)


async def simulate(gateway: str, traffic: Traffic, seconds: float | None = None) -> Crowd:
    """Run the devices against a gateway, for some seconds or until cancelled."""
    url = httpx.URL(gateway)
    wires = NamedTransport({url.host: f"{url.host}:{url.port or 80}"})
    async with (
        # A device's patience is one limit for everything, so it is not the client's to keep.
        httpx.AsyncClient(base_url=url, timeout=None, transport=wires) as app,  # noqa: S113
        httpx.AsyncClient(timeout=2.0, trust_env=False) as control,
    ):
        token = os.environ.get("LDFI_DEVICE_TOKEN") or os.environ.get("LDFI_TOKEN")
        reporter = Reporter(control, os.environ.get("LDFI_URL"), token)
        crowd = Crowd(app, traffic, reporter)
        reporting = asyncio.create_task(reporter.run())
        try:
            async with asyncio.timeout(seconds):
                await crowd.run()
        except TimeoutError:
            await crowd.finish()
            await reporter.flush()
        finally:
            reporting.cancel()
    return crowd


def run(gateway: str, traffic: Traffic) -> None:
    """Run the devices in this process until SIGTERM."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(asyncio.CancelledError):
        asyncio.run(_until_terminated(gateway, traffic))


async def _until_terminated(gateway: str, traffic: Traffic) -> None:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - we are a coroutine of asyncio.run
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await simulate(gateway, traffic)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that describe an application and its traffic."""
    parser.add_argument("--world", choices=WORLDS, default="streaming", help="which application")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--devices", type=int, default=DEFAULT_DEVICES, help="how many")
    parser.add_argument("--sampled", type=float, default=0.5, help="share of traces kept, 0 to 1")
    parser.add_argument(
        "--share", type=float, help="of what this machine can serve is asked for at most, 0 to 1"
    )
    parser.add_argument(
        "--rates",
        type=_rates,
        metavar="CLASS=RATE,...",
        help="requests per second by class; default: "
        + ", ".join(f"{dict(world.rates)} of the {name}" for name, world in WORLDS.items()),
    )


def traffic(options: argparse.Namespace) -> Traffic:
    """Make traffic as the options say."""
    world = WORLDS[options.world]
    return Traffic(
        rates=options.rates or dict(world.rates),
        devices=options.devices,
        sampled=options.sampled,
        seed=options.seed,
        share=options.share,
        patience=world.patience,
    )


def _rates(text: str) -> dict[str, float]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    rates = {kind: float(rate) for kind, _, rate in pairs}
    known = {kind for world in WORLDS.values() for kind in world.rates}
    if unknown := rates.keys() - known:
        raise argparse.ArgumentTypeError(
            f"no class {sorted(unknown)}; the classes are {sorted(known)}"
        )
    return rates
