"""A relay: a process that does not lead serves edges from one subscription to the one that does.

To the leader a relay is one edge (:class:`ldfi.experiments.scheduler.edges.Behind`); to its edges
it is the service. It mirrors the leader's rules on a board of its own, under leases that end with
the one it holds. What an edge asks for it gives out of what it was granted itself. Once edges here
ask about an experiment, it has one device *in hand*, and asks the leader for the next one as soon
as that is given away: so an edge waits for no second answer, and control, which takes nothing,
costs the leader nothing. Where the leader has no more, both arms end with the one in hand.

It calls with the token of an edge that called it last, as everything that goes on to the leader
bears the caller's own token; so it begins with the first edge that comes.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import httpx

from ldfi.experiments.scheduler.edges import MOST
from ldfi.experiments.scheduler.rules_board import RulesBoard
from ldfi.experiments.telemetry import clock
from ldfi.fit.protocol.allowance import REFUSED_SECONDS, Enrolled, Numbers, written
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.errors import MalformedRules
from ldfi.fit.protocol.rules import Lease, read_lease

_log = logging.getLogger("ldfi")

WAIT_SECONDS: Final = 1.0
"""How long the leader may wait for a change. So much later, at most, it knows what edges used."""

BRIEF_SECONDS: Final = 0.1
"""The same while edges are to say that they have dropped a rule."""

RETRY_SECONDS: Final = 0.3
ASK_SECONDS: Final = 0.2
"""How long the leader may take. What comes too late for the edge that asked is there for the next
one."""

ANSWER_SECONDS: Final = 2.0
"""How much later an answer may come."""

FORWARDED: Final = "ldfi-forwarded"
"""A process that does not lead does not hand on what bears this header."""

NAMESPACE: Final = "ldfi-namespace"
DEVICES: Final = "ldfi-devices"
"""The header in which an edge says by what it tells devices apart, as in ``header,address``."""

"""In which namespace something is asked for, where the token does not say it."""

SPARE_SECONDS: Final = 5.0
"""After which an allowance that no edge has asked for goes back to the leader."""


class EdgeRelay:
    """Serves edges where this process does not lead. ``leader`` says where the leader is, empty for
    nowhere; ``lease``: seconds, as the leader's. ``namespace``: whose edges they are; empty: the
    default one's.

    ``under``: what serves the edges of other namespaces here; they are halted with the default one.
    """

    def __init__(
        self, leader: Callable[[], Awaitable[str]], lease: float, namespace: str = ""
    ) -> None:
        self.under: list[EdgeRelay] = []
        self._namespace = {NAMESPACE: namespace} if namespace else {}
        self._leader = leader
        self._lease = lease
        self._client = httpx.AsyncClient(trust_env=False)
        self._token = ""
        self._called = asyncio.Event()
        self._begin()

    def _begin(self) -> None:
        self.board = RulesBoard(secrets.token_hex(4), self._lease, in_advance=False)
        self._name = secrets.token_hex(8)
        self._version = ""
        self._until = 0.0
        self._numbers = Numbers()
        self._parts: dict[str, _Part] = {}
        self._stocking: dict[str, asyncio.Task[bool]] = {}
        """Experiments for which the leader is asked for the next device just now."""
        self._theirs: frozenset[str] = frozenset()
        """What the leader had armed when it was asked last."""
        self._dropping: dict[str, str] = {}
        """Rules that the leader has taken down and edges may still follow, each with the version up
        to which it was in force."""

    def called(self, token: str) -> None:
        """Note the token of an edge that calls."""
        self._token = token
        self._called.set()

    def halt(self) -> None:
        """Disarm everything here, at once; rules that the leader has armed by now stay out of
        force."""
        self.board.clear()
        for each in self.under:
            each.halt()

    def rest(self) -> None:
        """Stop to serve until an edge calls again: this process leads now, or ends."""
        self._called.clear()
        self.board.close()
        for task in self._stocking.values():
            task.cancel()
        self._begin()

    async def close(self) -> None:
        """Send the edges elsewhere, and close the connections."""
        self.rest()
        await self._client.aclose()

    async def run(self) -> None:
        """Mirror the leader's rules, until cancelled."""
        failures = 0
        while True:
            await self._called.wait()
            try:
                await self._subscribe()
                failures = 0
            except (httpx.HTTPError, MalformedRules, ValueError) as error:
                failures += 1
                level = logging.WARNING if failures == 1 else logging.DEBUG
                _log.log(level, "no rules from the leader: %s: %s", type(error).__name__, error)
                if clock.now() >= self._until:
                    self.board.clear()
                await asyncio.sleep(RETRY_SECONDS)

    async def ask(self, name: str, experiment: str, arm: Arm, number: int, now: float) -> bool:
        """Let an edge enrol one more device, as :meth:`RulesBoard.ask` does."""
        board, armed_rule = self.board, self.board.all().get(experiment)
        if armed_rule is None or armed_rule.down is not None:
            return False
        self._part(experiment).asked_at = now
        if armed_rule.room(now) <= 0 and not await self._granted(experiment):
            return False
        granted = board.ask(name, experiment, arm, number, clock.now())
        if granted and armed_rule.room(clock.now()) <= 0:
            self._stock(experiment)
        return granted

    async def _subscribe(self) -> None:
        """Report, and wait for rules."""
        board, now = self.board, clock.now()
        self._dropping = {
            each: held for each, held in self._dropping.items() if not board[each].out_of_force(now)
        }
        self._let_go(now)
        over = board.all().keys() - self._theirs - self._dropping.keys()
        followed = {each: p for each, p in board.all().items() if p.parts or p.members}
        # once a rule is over, what edges never told counts as used
        report = {
            each: Enrolled(
                armed_rule.spent if each in over else armed_rule.used, armed_rule.enrolled
            )
            for each, armed_rule in followed.items()
        }
        silent = [each for each in over if each in followed and followed[each].controls is None]
        asked = {
            "edge": self._name,
            "version": self._version,
            "wait": BRIEF_SECONDS if self._dropping else WAIT_SECONDS,
            "asked": self._numbers.settled,
            "late": min(board.fleet.late, MOST),
            "behind": min(board.edges(now), MOST),
            "holds": next(iter(self._dropping.values()), self._version),
            "kept": ",".join(
                f"{each}:{armed_rule.members}" for each, armed_rule in followed.items()
            ),
            "silent": ",".join(silent),
            **written(report),
        }
        told_apart = "address" if board.fleet.by_address(now) else ""
        headers = {DEVICES: told_apart}
        answer = await self._call("GET", "rules", WAIT_SECONDS, headers=headers, params=asked)
        lease = read_lease(answer.json(), asked_at=now)
        if board is not self.board:
            return
        for experiment in over:
            board.forget(experiment)
            self._parts.pop(experiment, None)
        self._until = lease.ends
        board.renew(lease.ends)
        self._mirror(lease)
        await self._provide()

    def _mirror(self, lease: Lease) -> None:
        board, now = self.board, clock.now()
        there = {rule.experiment: rule for rule in lease.rules}
        for experiment in board.all().keys() - there.keys() - self._dropping.keys():
            board.take_down(experiment)
            self._dropping[experiment] = self._version
        self._theirs = frozenset(there)
        for experiment, rule in there.items():
            part = self._part(experiment)
            part.dealt = rule.members or 0
            if experiment in board.all():
                self._widen(experiment)
            else:
                board.put(rule, part.members, now)
        self._version = lease.version

    def _let_go(self, now: float) -> None:
        """Return allowances that no edge has asked for."""
        for experiment in self.board.armed():
            part, spare = self._part(experiment), self.board[experiment].room(now)
            if part.asked_at < now - SPARE_SECONDS and spare > 0 and part.extra:
                part.extra -= min(spare, part.extra)
                self._widen(experiment)

    async def _provide(self) -> None:
        """Ask for those edges that cannot ask and had to turn a device away."""
        for experiment in self.board.armed():
            if any(part.heard.wants for part in self.board[experiment].parts.values()):
                await self._granted(experiment)

    def _stock(self, experiment: str) -> None:
        """Ask for the next device before an edge does."""
        stocking = self._stocking
        if experiment not in stocking:
            task = asyncio.create_task(self._granted(experiment))
            stocking[experiment] = task
            task.add_done_callback(lambda _: stocking.pop(experiment, None))

    async def _granted(self, experiment: str) -> bool:
        """Ask the leader for one more device that would be treated: it is ours from then on."""
        board, part, now = self.board, self._part(experiment), clock.now()
        part.asked_at = now
        if now < part.refused_until:
            return False
        number = self._numbers.begin()
        try:
            question = {
                "edge": self._name,
                "experiment": experiment,
                "arm": "treatment",
                "ask": number,
                "version": self._version,
            }
            answer = await self._call("POST", "asks", ASK_SECONDS, json=question)
            granted = answer.json()["granted"] is True
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            granted = False
        finally:
            self._numbers.end(number)
        if board is not self.board:
            return False
        if not granted:
            part.refused_until = clock.now() + REFUSED_SECONDS
        else:
            part.extra += 1
            self._widen(experiment)
        return granted

    def _widen(self, experiment: str) -> None:
        """Set the allowances of edges here to what this relay may hand on now."""
        if experiment in self.board.all():
            members = self._part(experiment).members
            self.board.allow(experiment, members, clock.now(), members=members)

    def _part(self, experiment: str) -> _Part:
        return self._parts.setdefault(experiment, _Part())

    async def _call(
        self,
        method: str,
        what: str,
        wait: float,
        headers: dict[str, str] | None = None,
        **more: Any,
    ) -> httpx.Response:
        """Call the leader. Raises httpx.HTTPError."""
        url = await self._leader()
        if not url:
            raise httpx.ConnectError("nobody leads just now")
        answer = await self._client.request(
            method,
            f"{url.rstrip('/')}/api/v1/edge/{what}",
            headers={
                "Authorization": f"Bearer {self._token}",
                FORWARDED: "1",
                **self._namespace,
                **(headers or {}),
            },
            timeout=wait + ANSWER_SECONDS,
            **more,
        )
        return answer.raise_for_status()


@dataclass(slots=True)
class _Part:
    """What the leader lets this relay hand on: ``dealt`` in advance, and ``extra`` on demand."""

    dealt: int = 0
    extra: int = 0
    asked_at: float = 0.0
    refused_until: float = 0.0

    @property
    def members(self) -> int:
        return self.dealt + self.extra
