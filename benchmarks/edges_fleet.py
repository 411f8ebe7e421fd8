"""A process of simulated edges: ``python -m benchmarks.edges_fleet``, told by JSON what to be.

Devices come at random to random edges, all the time. Lines on standard input tell it what to do:
``arrive`` (devices begin to come), ``report`` (say what has been seen since the last report) and
``count`` (how many edges know the rules, and what was refused so far), each in one line of JSON.

The edges of a process share one event loop. While it reads what thousands of streams tell it at
once, answers to asks wait there as well, and count as later than they were: a bound from above.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
from dataclasses import asdict, dataclass, field
from time import time
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.edges_http import Address
from benchmarks.edges_simulated import Record, SimulatedEdge
from ldfi.fit.protocol.allocation import mark_of

WATCH_SECONDS: Final = 5.0
Arrival = tuple[float, str, str]
"""When a device came, its name, and what became of it: ``treatment`` and ``control`` where it was
enrolled, nothing where the edge knew of no experiment that claims it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``opened`` and ``devices``: so many streams are opened, and so many devices come, a second.
    Devices are drawn from ``population``."""

    relays: list[str]
    token: str
    edges: int
    opened: float
    devices: float
    population: int
    seed: int

    def to_json(self) -> str:
        """Write it for the command line."""
        return json.dumps(asdict(self))


@dataclass
class Fleet:
    """The edges of this process."""

    plan: Plan
    record: Record = field(default_factory=Record)
    arrivals: list[Arrival] = field(default_factory=list)
    edges: list[SimulatedEdge] = field(default_factory=list)
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    async def open(self) -> None:
        """Open the streams, one after the other."""
        plan = self.plan
        for number in range(plan.edges):
            place = urlsplit(plan.relays[number % len(plan.relays)])
            address = Address(place.hostname or "", place.port or 80, plan.token)
            edge = SimulatedEdge(address, self.record)
            self.edges.append(edge)
            self._begin(edge.open())
            await asyncio.sleep(1 / plan.opened)

    async def watch(self) -> None:
        """Have each edge look whether its stream is alive, now and then."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for edge in self.edges:
                edge.watch()

    async def devices(self) -> None:
        """Let devices come, at random moments."""
        chance = random.Random(self.plan.seed)
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += chance.expovariate(self.plan.devices)
            await asyncio.sleep(max(0.0, due - loop.time()))
            device = f"device-{chance.randrange(self.plan.population)}"
            self._arrive(chance.choice(self.edges), device)

    def _arrive(self, edge: SimulatedEdge, device: str) -> None:
        at, became = time(), edge.arrive(mark_of(device))
        if isinstance(became, str):
            self.arrivals.append((at, device, became))
        else:
            became.add_done_callback(lambda done: self.arrivals.append((at, device, done.result())))

    async def obey(self) -> None:
        """Do what the lines of standard input say, until there are no more."""
        loop = asyncio.get_running_loop()
        lines = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            match line.decode().strip():
                case "arrive":
                    self._begin(self.devices())
                case "count":
                    know = sum(edge.knows for edge in self.edges)
                    _say({"know": know, "refused": self.record.refused})
                case "report":
                    _say({**self.record.to_json(), "arrivals": self.arrivals})
                    self.record.begin()
                    self.arrivals.clear()

    async def run(self) -> None:
        """Be these edges until standard input ends."""
        self._begin(self.watch())
        self._begin(self.open())
        await self.obey()

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


def main() -> None:
    """Be what the plan says."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(Fleet(Plan(**json.loads(sys.argv[1]))).run())


if __name__ == "__main__":
    main()
