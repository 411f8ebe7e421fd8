"""One simulated edge of :mod:`benchmarks.edges`: the protocol of an edge, and nothing else of it.

It has a name, a stream of offers, counters and connections of its own. What edges of the same
process share is only what has been read of documents that are alike, byte for byte.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Final

from benchmarks.edges_http import Address, Line, Offers, Refused
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.rules import Rule

ASK_SECONDS: Final = 0.020
ASK_PAUSE, LONGEST_PAUSE = 0.25, 1.0
REFUSED_SECONDS: Final = 0.2
"""For how long nobody is asked for after a device was refused."""

SILENT_SECONDS: Final = 25.0
STREAM_SECONDS: Final = 540.0
"""A stream that ends earlier than this has been closed on the edge."""

SHORTEST_SECONDS: Final = 0.1
ANSWER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Document:
    """Rules as they came, by experiment."""

    version: str
    seconds: float
    rules: Mapping[str, Rule]


def read(body: bytes) -> Document:
    """Read an offer or a lease."""
    told = json.loads(body)
    if told["asks"] is not True:
        raise Refused("it cannot be asked")
    rules = {each["experiment"]: _rule(json.dumps(each)) for each in told["rules"]}
    return Document(told["version"], told["lease_seconds"], rules)


@lru_cache(maxsize=4096)
def _rule(text: str) -> Rule:
    return Rule.from_json(json.loads(text))


_offer = lru_cache(maxsize=256)(read)


@dataclass(slots=True)
class Record:
    """What the edges of a process have seen. Times are Unix seconds.

    ``rules``: those that were armed. ``known`` and ``gone``: when edges had it that an experiment
    is armed, and that it is not any more. ``asks``: how long each took that was answered. And in
    all: ``late``, asks without an answer in time; ``paused``, devices for which nobody was asked
    because of one; ``refused``, what should not be.
    """

    rules: dict[str, dict[str, Any]] = field(default_factory=dict)
    known: dict[str, list[float]] = field(default_factory=dict)
    gone: dict[str, list[float]] = field(default_factory=dict)
    asks: list[float] = field(default_factory=list)
    late: int = 0
    paused: int = 0
    polls: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def to_json(self) -> dict[str, Any]:
        """Give everything by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def begin(self) -> None:
        """Forget what belongs to experiments."""
        for kept in (self.rules, self.known, self.gone, self.asks):
            kept.clear()


@dataclass(slots=True)
class Enrolment:
    """The devices of one experiment at one edge, by mark. ``armed``: its rule is among those that
    the edge knows."""

    armed: bool = True
    treatment: set[int] = field(default_factory=set)
    control: set[int] = field(default_factory=set)


class SimulatedEdge:
    """One edge. ``to``: its relay."""

    __slots__ = (
        "_asks",
        "_enrolments",
        "_failures",
        "_late",
        "_lease_until",
        "_line",
        "_open",
        "_opened_at",
        "_over",
        "_pause_until",
        "_polling",
        "_record",
        "_refused_until",
        "_stream",
        "_tasks",
        "_to",
        "_told",
        "_trouble",
        "_version",
        "name",
        "rules",
    )

    def __init__(self, to: Address, record: Record) -> None:
        self.name = secrets.token_hex(8)
        self.rules: Mapping[str, Rule] = {}
        self._to, self._record = to, record
        self._version = ""
        self._lease_until = 0.0
        self._enrolments: dict[str, Enrolment] = {}
        self._asks = self._told = self._failures = self._trouble = 0
        self._open: set[int] = set()
        self._late = 0
        self._pause_until = self._refused_until = 0.0
        self._line = Line(to)
        self._stream: Offers | None = None
        self._opened_at = 0.0
        self._polling = self._over = False
        self._tasks: set[asyncio.Task[Any]] = set()

    # The stream of offers

    async def open(self) -> None:
        """Open the stream of offers."""
        asked = f"version={self._version}&asked={self._settled}&wait=2"
        target = f"/api/v1/edge/rules?edge={self.name}&{asked}"
        accept = "text/event-stream, application/json;q=0.9"
        question = self._to.question("GET", target, accept)
        loop = asyncio.get_running_loop()
        try:
            _, self._stream = await loop.create_connection(
                lambda: Offers(question, self._offered, self._ended), self._to.host, self._to.port
            )
        except OSError:
            self._ended("no connection")
            return
        self._opened_at = loop.time()

    def watch(self) -> None:
        """Give a stream up that has been silent for too long."""
        now = asyncio.get_running_loop().time()
        if self._stream is not None and now - self._stream.seen > SILENT_SECONDS:
            self._stream.close("silent")

    def close(self) -> None:
        """Be no more."""
        self._over = True
        self._line.close()
        if self._stream is not None:
            self._stream.close()

    def _offered(self, body: bytes) -> None:
        at = time.time()
        offer = _offer(body)
        self._trouble = 0
        if self._is_news(offer.version):
            self._take(offer, at)
        self._keep()

    def _ended(self, why: str) -> None:
        """Open another one. What was offered is known no more, unless it ended in order."""
        self._stream = None
        if self._over:
            return
        loop = asyncio.get_running_loop()
        if why or loop.time() - self._opened_at < STREAM_SECONDS:
            self._record.refused[f"stream: {why or 'ended early'}"] += 1
            self._version, self.rules = "", {}
            self._trouble += 1
        longest = min(10.0, 0.5 * 2 ** min(self._trouble - 1, 10)) if self._trouble else 0.0
        loop.call_later(random.uniform(longest / 2, longest), lambda: self._begin(self.open()))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def knows(self) -> bool:
        """Return whether it has been told the rules."""
        return bool(self._version)

    @property
    def polls(self) -> bool:
        """Return whether it has something to keep, or to tell."""
        return self._polling

    def _is_news(self, version: str) -> bool:
        """Return whether a version is not older than the one it knows, as far as can be told."""
        epoch, _, number = version.rpartition("-")
        known, _, before = self._version.rpartition("-")
        return epoch != known or int(number) >= int(before)

    def _take(self, told: Document, at: float) -> None:
        """Take over rules that are not older than those it knows."""
        for name in told.rules.keys() - self.rules.keys():
            self._record.known.setdefault(name, []).append(at)
            self._record.rules.setdefault(name, told.rules[name].to_json())
        for name in self.rules.keys() - told.rules.keys():
            self._record.gone.setdefault(name, []).append(at)
        self.rules, self._version = told.rules, told.version
        for name, enrolment in self._enrolments.items():
            enrolment.armed = name in told.rules

    # Devices

    def arrive(self, mark: int) -> str | asyncio.Future[str]:
        """Let a device come, given by its mark; what becomes of it, at once or later."""
        for name, rule in self.rules.items():
            arm = rule.claim.arm_of(mark)
            if arm is not None and rule.keeps(mark, arm):
                return self._enrol(name, rule, arm, mark)
        return ""

    def _enrol(self, name: str, rule: Rule, arm: Arm, mark: int) -> str | asyncio.Future[str]:
        known = self._enrolments.get(name, Enrolment())
        if mark in known.treatment or mark in known.control:
            return "again"
        now = asyncio.get_running_loop().time()
        if rule.members is None or len(known.treatment) < rule.members:
            if now >= self._lease_until:
                return "no lease"
            self._count(name, arm, mark)
            return arm
        if now < self._refused_until:
            return "refused"
        if now < self._pause_until:
            self._late += 1
            self._record.paused += 1
            return "paused"
        return asyncio.ensure_future(self._ask(name, arm, mark))

    def _count(self, name: str, arm: Arm, mark: int) -> None:
        enrolment = self._enrolments.setdefault(name, Enrolment(name in self.rules))
        (enrolment.treatment if arm == "treatment" else enrolment.control).add(mark)
        self._keep()

    async def _ask(self, name: str, arm: Arm, mark: int) -> str:
        self._asks += 1
        number, version = self._asks, self._version
        question = {
            "edge": self.name,
            "experiment": name,
            "arm": arm,
            "ask": number,
            "version": version,
        }
        self._open.add(number)
        began = asyncio.get_running_loop().time()
        line = Line(self._to)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                body = await line.ask("POST", "/api/v1/edge/asks", json.dumps(question).encode())
        except TimeoutError:
            self._record.late += 1
            return self._give_up("late")
        except (Refused, OSError) as error:
            self._record.refused[f"ask: {error}"] += 1
            return self._give_up("failed")
        finally:
            line.close()
            self._open.discard(number)
            self._keep()
        self._record.asks.append(asyncio.get_running_loop().time() - began)
        self._failures = 0
        answer = json.loads(body)
        if not answer["granted"]:
            self._refused_until = began + REFUSED_SECONDS
            return "refused"
        if answer["version"] != version or name not in self.rules:
            return "stale"
        self._lease_until = max(self._lease_until, began + answer["lease_seconds"])
        self._count(name, arm, mark)
        return arm

    def _give_up(self, why: str) -> str:
        self._late += 1
        now = asyncio.get_running_loop().time()
        if now >= self._pause_until:
            self._pause_until = now + min(LONGEST_PAUSE, ASK_PAUSE * 2 ** min(self._failures, 10))
            self._failures += 1
        return why

    # The long poll

    @property
    def _busy(self) -> bool:
        """Return whether there is something to keep, or to tell."""
        return (
            bool(self._enrolments)
            or self._told < self._settled
            or any(rule.members is None or rule.members > 0 for rule in self.rules.values())
        )

    @property
    def _settled(self) -> int:
        return min(self._open, default=self._asks + 1) - 1

    def _keep(self) -> None:
        """Begin to poll, where it has to."""
        if self._busy and not self._polling:
            self._polling = True
            self._begin(self._poll())

    async def _poll(self) -> None:
        loop, failures = asyncio.get_running_loop(), 0
        try:
            while self._busy:
                asked_at = loop.time()
                try:
                    await self._renew(asked_at)
                    failures, pause = 0, SHORTEST_SECONDS - (loop.time() - asked_at)
                except (Refused, TimeoutError, OSError) as error:
                    self._record.refused[f"poll: {error or type(error).__name__}"] += 1
                    failures += 1
                    longest = min(10.0, 0.5 * 2 ** min(failures - 1, 10))
                    pause = random.uniform(longest / 2, longest)
                await asyncio.sleep(max(0.0, pause))
        finally:
            self._polling = False
            self._line.close()

    async def _renew(self, asked_at: float) -> None:
        """Tell, and take a lease."""
        over = [name for name, each in self._enrolments.items() if not each.armed]
        settled, wait = self._settled, 0 if over else 1
        counts = self._enrolments.items()
        told = {
            "used": ",".join(f"{n}:{len(e.treatment)}" for n, e in counts if e.treatment),
            "control": ",".join(f"{n}:{len(e.control)}" for n, e in counts if e.control),
            "late": f"{self._late or ''}",
        }
        target = (
            f"/api/v1/edge/rules?edge={self.name}&version={self._version}&wait={wait}"
            f"&asked={settled}" + "".join(f"&{n}={v}" for n, v in told.items() if v)
        )
        async with asyncio.timeout(wait + ANSWER_SECONDS):
            body = await self._line.ask("GET", target)
        self._record.polls += 1
        lease = read(body)
        self._told = max(self._told, settled)
        for name in over:
            del self._enrolments[name]
        if self._is_news(lease.version):
            self._take(lease, time.time())
            self._lease_until = asked_at + lease.seconds
