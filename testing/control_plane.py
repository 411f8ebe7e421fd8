"""A stub of the control plane: all that an edge talks to, over a real socket, and nothing else.

It serves the rules as the service does: a long poll, answered with a lease as soon as the rules are
other ones than the edge has. It can do what a service in trouble does, too: be away, answer slowly,
answer rubbish, or let every lease run out. What it arms is decided by the test and by nobody else.
"""

from __future__ import annotations

import itertools
import json
import re
import secrets
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

from ldfi.fit.protocol.allocation import Claim, mark_of
from ldfi.fit.protocol.context import ENTRY, encode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import VARIABLE, Keys
from ldfi.fit.protocol.points import template_path
from ldfi.fit.protocol.predicate import Condition, Predicate
from ldfi.fit.protocol.rules import Rule
from ldfi.fit.protocol.scenario import scenario_of
from ldfi.testing.loopback_server import Answer, Listener

RULES_PATH: Final = "/api/v1/edge/rules"
_MAX_WAIT: Final = 30.0
_EDGE: Final = re.compile(r"[a-z0-9]{1,32}")
_CHOSEN_SHARE: Final = 0.5
_MAX_CHOSEN: Final = 12
"""Devices that one rule can be told apart by name: a salt that fits is found in 4,096 tries."""


class Poll(NamedTuple):
    """What an edge asked. ``at`` is by :func:`time.monotonic`; ``used`` as the edge wrote it."""

    at: float
    edge: str
    version: str
    wait: float
    used: str
    authorization: str


class ControlPlane:
    """Serves rules on loopback for as long as its ``with`` block lasts.

    ``lease``: seconds that an edge may act on an answer, counted from its question; an armed edge
    lets each question wait for a second, so give it more. ``secret`` signs failure contexts; every
    process under test must have it (:meth:`environment`).
    """

    def __init__(self, lease: float = 5.0, secret: str = "") -> None:
        self.lease = lease
        self.token = secrets.token_hex(16)
        """What an edge must show; ``LDFI_TOKEN``."""
        self.polls: list[Poll] = []
        """Every question that was asked, in order, those that were not answered well included."""
        self._keys = f"testing:{secret or secrets.token_hex(16)}"
        self._rules: list[Rule] = []
        self._changed = threading.Condition()
        self._epoch = secrets.token_hex(4)
        self._count = 0
        self._numbers = itertools.count(1)
        self._instead: Answer | None = None
        self._delay = 0.0
        self._listener = Listener(self._answer)

    def __enter__(self) -> Self:
        self._listener.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.go_away()

    @property
    def url(self) -> str:
        """Return where it listens; ``LDFI_URL``."""
        return self._listener.url

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in force, in the order in which they were armed."""
        return tuple(self._rules)

    @property
    def version(self) -> str:
        """The version of the rules in force; it changes with each of them."""
        return f"{self._epoch}-{self._count}"

    def environment(self) -> dict[str, str]:
        """Return the variables by which ``fit`` in a process under test finds this stub."""
        return {"LDFI_URL": self.url, "LDFI_TOKEN": self.token, VARIABLE: self._keys}

    def arm(
        self,
        *faults: str | Fault,
        on: str | Predicate = "",
        devices: Iterable[str] = (),
        others: Iterable[str] = (),
        treatment: float = 1.0,
        control: float = 0.0,
        members: int | None = None,
        delay: float = 10.0,
        patience: float = 0.0,
    ) -> str:
        """Arm faults, beside what is armed already; returns the experiment's name.

        ``on``: the request class, as ``"GET /items/17"`` (with identifiers as wildcards, as the
        edge sees it) or a predicate; by default any request. Who is treated: all ``devices`` and
        none of the ``others`` (of all the rest, about half), or else the share ``treatment`` of
        all devices; ``control`` is the share of the control arm. A device is in one experiment at
        a time: the one that was armed first. ``members``: how many devices each edge may treat.
        ``delay``: seconds that a ``delay`` lasts. ``patience``: seconds that a context holds at
        least.

        Raises ValueError for what is no fault or no request, and for more than 12 named devices.
        """
        experiment = f"e{next(self._numbers)}"
        chosen, spared = tuple(devices), tuple(others)
        salt = f"salt-{experiment}"
        if chosen or spared:
            treatment, control = _CHOSEN_SHARE, 0.0
            salt = _salt(chosen, spared)
        rule = Rule(
            experiment,
            salt,
            on if isinstance(on, Predicate) else _predicate(on),
            treatment,
            control,
            tuple(Fault.parse(each) if isinstance(each, str) else each for each in faults),
            delay_ms=max(1, round(delay * 1000)),
            members=members,
            yields_to=tuple(each.claim for each in self._rules),
            patience=patience,
        )
        self.put(*self._rules, rule)
        return experiment

    def disarm(self, experiment: str = "") -> None:
        """Take down one experiment, or all. An edge that waits hears of it at once."""
        self.put(*(each for each in self._rules if experiment and each.experiment != experiment))

    def put(self, *rules: Rule) -> None:
        """Put exactly these rules in force."""
        with self._changed:
            self._rules = list(rules)
            self._announce()

    def expire(self) -> None:
        """Grant leases of no length from now on, as a service does that must not arm any more.

        Set ``lease`` to grant longer ones again.
        """
        with self._changed:
            self.lease = 0.0
            self._announce()

    def go_away(self) -> None:
        """Refuse connections and hang up on whoever waits; the edges' leases run out."""
        with self._changed:
            self._listener.leaving = True
            self._changed.notify_all()
        self._listener.close()

    def come_back(self) -> None:
        """Listen again, at the same address."""
        self._listener.open()

    def answer_slowly(self, seconds: float) -> None:
        """Take so many seconds more for each answer; 0 ends it."""
        self._delay = seconds

    def answer_with(
        self, body: bytes = b"", status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer every question with this, whatever it is, until :meth:`answer_well`."""
        with self._changed:
            self._instead = Answer(status, body, dict(headers or {}))
            self._changed.notify_all()

    def answer_well(self) -> None:
        """Answer as the service does."""
        self._instead = None

    def until_held(self, seconds: float = 10.0) -> None:
        """Wait until an edge says that it holds the rules in force.

        An edge begins to ask with its first request, so send one first. Raises TimeoutError.
        """
        with self._changed:
            if not self._changed.wait_for(self._held, seconds):
                heard = f"was asked {len(self.polls)} times" if self.polls else "was never asked"
                raise TimeoutError(
                    f"no edge took version {self.version} of the rules in {seconds:g} s: {self.url}"
                    f" {heard}. An edge asks from its first request on"
                )

    def used(self, experiment: str) -> int:
        """Return how many devices the edges say they have treated for an experiment."""
        latest: dict[str, int] = {}
        for poll in self.polls:
            for each in filter(None, poll.used.split(",")):
                name, _, count = each.partition(":")
                if name == experiment:
                    latest[poll.edge] = int(count)
        return sum(latest.values())

    def baggage(self, *faults: str, device: str = "") -> str:
        """Return a ``baggage`` header that carries faults, signed with this plane's key.

        Without ``device`` it is what a stranger may have caught, and every edge must take it out;
        with one it is an engineer's, and is let in with requests of that device alone.
        """
        value = encode(
            Keys.parse(self._keys),
            scenario_of(device) if device else "caught",
            "treatment",
            int(time.time()) + 60,
            map(Fault.parse, faults),
        )
        return f"{ENTRY}={value}"

    def _held(self) -> bool:
        return bool(self.polls) and self.polls[-1].version == self.version

    def _announce(self) -> None:
        self._count += 1
        self._changed.notify_all()

    def _answer(self, path: str, query: Mapping[str, str], authorization: str) -> Answer | None:
        """Answer one request; None to hang up."""
        if path != RULES_PATH:
            return Answer(404)
        wait = _seconds(query.get("wait", "0"))
        with self._changed:
            version = query.get("version", "")
            edge = query.get("edge", "")
            poll = Poll(
                *(time.monotonic(), edge, version, wait or 0.0),
                *(query.get("used", ""), authorization),
            )
            self.polls.append(poll)
            self._changed.notify_all()
        if self._left_within(self._delay):
            return None
        if self._instead is not None:
            return self._instead
        if authorization != f"Bearer {self.token}":
            return Answer(401)
        if wait is None or not _EDGE.fullmatch(edge):
            return Answer(422)
        return self._rules_after(version, wait)

    def _left_within(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._listener.leaving, seconds)

    def _rules_after(self, version: str, wait: float) -> Answer | None:
        with self._changed:
            self._changed.wait_for(
                lambda: version != self.version or self._listener.leaving or self._instead, wait
            )
            if self._listener.leaving:
                return None
            return self._instead or Answer(200, json.dumps(self._document()).encode())

    def _document(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "lease_seconds": self.lease,
            "rules": [rule.to_json() for rule in self._rules],
        }


def _seconds(text: str) -> float | None:
    """Return how long an edge wants to wait; None where that is no time that the service allows."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= _MAX_WAIT else None


def _predicate(text: str) -> Predicate:
    if not text:
        return Predicate()
    method, _, path = text.partition(" ")
    if not path.startswith("/"):
        raise ValueError(f"{text!r} is no request; write METHOD /PATH, for instance GET /items/17")
    return Predicate.of([Condition("method", method), Condition("path", template_path(path))])


def _salt(devices: tuple[str, ...], others: tuple[str, ...]) -> str:
    """Find a salt with which half of all devices are treated, all of these and none of those."""
    if len(devices) + len(others) > _MAX_CHOSEN or set(devices) & set(others):
        raise ValueError(
            f"{len(devices)} devices and {len(others)} others: name up to {_MAX_CHOSEN}, each once"
        )
    for number in itertools.count():
        claim = Claim(f"salt-{number}", _CHOSEN_SHARE, 0.0)
        treated = [claim.arm_of(mark_of(each)) == "treatment" for each in (*devices, *others)]
        if treated == [True] * len(devices) + [False] * len(others):
            return claim.salt
    raise AssertionError("there is always a next number")
