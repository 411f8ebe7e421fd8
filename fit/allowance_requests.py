"""Allowance on demand: may one more device be enrolled?

Where several edges share what an experiment may treat, none has a part of its own. A device that
falls in an arm is asked for, in *either* arm, or waiting itself would tell the arms apart. The
answer has 20 ms; a device for which it does not come in that time is in neither arm. After an ask
that failed nobody is asked for a while, so that a control plane in trouble costs requests nothing.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from opentelemetry import context

from ldfi.fit.clock import steady
from ldfi.fit.protocol.allowance import REFUSED_SECONDS, Numbers
from ldfi.fit.protocol.context import Arm

ASK_SECONDS: Final = 0.020
"""How long a request may wait for the answer."""

PAUSE_SECONDS: Final = 0.25
LONGEST_PAUSE_SECONDS: Final = 1.0
"""For how long nobody is asked after an ask failed: twice as long each time, up to this. So a
control plane in trouble costs one request of an edge 20 ms in a second. Any longer, and the first
ask of an experiment, made while the leader is busy arming it, would cost the experiment itself."""

KEPT_SECONDS: Final = 4.0
"""How old an idle connection may be that is used again: servers close them."""

_MAX_ANSWER: Final = 10_000


@dataclass(frozen=True, slots=True)
class Question:
    """May one more device be enrolled in an arm? ``version``: of the rules that were decided by."""

    experiment: str
    arm: Arm
    version: str
    number: int
    asked_at: float = field(default_factory=steady)

    @property
    def left(self) -> float:
        """Seconds for which the answer may still be waited for."""
        return self.asked_at + ASK_SECONDS - steady()


@dataclass(frozen=True, slots=True)
class Granted:
    """One more device may be enrolled, and the lease reaches until ``ends``, by the steady
    clock."""

    ends: float


class Asks:
    """What one edge asks. Safe to use from many threads.

    ``url``: of the service. ``edge``: the name of this one.
    """

    def __init__(self, url: str, token: str, edge: str) -> None:
        self.answered = False
        """Whether the service has said that it can be asked."""
        self._line = _Line(urlsplit(url), token)
        self._edge = edge
        self._lock = threading.Lock()
        self._numbers = Numbers()
        self._told = 0
        self._late: dict[str, int] = {}
        self._pause_until, self._failures = 0.0, 0
        self._refused: dict[str, float] = {}

    @contextmanager
    def asking(self, experiment: str, arm: Arm, version: str) -> Iterator[Question | None]:
        """Begin to ask for a device; None where nobody is to be asked just now. What the answer
        changes must have been done when this is left: then the ask is settled."""
        now = steady()
        with self._lock:
            if now < self._pause_until:
                self._late[experiment] = self._late.get(experiment, 0) + 1
                question = None
            elif now < self._refused.get(experiment, 0.0):
                question = None
            else:
                question = Question(experiment, arm, version, self._numbers.begin(), now)
        try:
            yield question
        finally:
            if question is not None:
                with self._lock:
                    self._numbers.end(question.number)

    def ask(self, question: Question) -> Granted | None:
        """Ask, and wait for the answer while there is time; None for no. Raises nothing."""
        token = context.attach(context.set_value("suppress_instrumentation", True))
        try:
            answer = self._line.post(question, self._edge)
            return self._read(question, answer)
        except Exception:
            self.give_up(question)
            return None
        finally:
            context.detach(token)

    def give_up(self, question: Question) -> None:
        """Note that an answer did not come in time, or not at all."""
        with self._lock:
            late = self._late
            late[question.experiment] = late.get(question.experiment, 0) + 1
            if question.asked_at < self._pause_until:
                return  # those that fail together are one failure
            pause = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2 ** min(self._failures, 10))
            self._pause_until = steady() + pause
            self._failures += 1

    def _read(self, question: Question, answer: Mapping[str, Any]) -> Granted | None:
        granted, seconds = answer["granted"], answer["lease_seconds"]
        if granted not in (True, False) or not 0 <= seconds <= 1e6:
            raise ValueError(f"no answer to an ask: {answer}")
        if question.left < 0:
            raise TimeoutError("the answer came too late")
        with self._lock:
            self._failures = 0
            if not granted:
                if len(self._refused) > 1_000:
                    self._refused.clear()
                self._refused[question.experiment] = steady() + REFUSED_SECONDS
        if not granted or answer["version"] != question.version:
            return None
        return Granted(question.asked_at + seconds)

    @property
    def settled(self) -> int:
        """The number up to which every ask has come to an end."""
        with self._lock:
            return self._numbers.settled

    @property
    def untold(self) -> bool:
        """Return whether the service does not know yet that all asks have come to an end."""
        with self._lock:
            return self._told < self._numbers.last

    def told(self, settled: int) -> None:
        """Note that the service knows that the asks up to this number have come to an end."""
        with self._lock:
            self._told = max(self._told, settled)

    def close(self) -> None:
        """Close the connections that wait for the next ask."""
        self._line.close()

    def late(self) -> int:
        """Count the devices for which no answer came in time."""
        with self._lock:
            return sum(self._late.values())


class _Line:
    """A few connections that are kept."""

    def __init__(self, url: SplitResult, token: str) -> None:
        self._url = url
        self._target = url.path.rstrip("/") + "/api/v1/edge/asks"
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        self._trust = ssl.create_default_context() if url.scheme == "https" else None
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    def post(self, question: Question, edge: str) -> Mapping[str, Any]:
        """Send an ask and return its answer. Raises what comes."""
        body = json.dumps(
            {
                "edge": edge,
                "experiment": question.experiment,
                "arm": question.arm,
                "ask": question.number,
                "version": question.version,
            }
        )
        connection = self._connection(question)
        try:
            _limit(connection, question.left)
            connection.request("POST", self._target, body, self._headers)
            _limit(connection, question.left)
            answer = _answer(connection.getresponse())
        except BaseException:
            with suppress(Exception):
                connection.close()
            raise
        self._idle.append((steady(), connection))
        return answer

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[1].close()

    def _connection(self, question: Question) -> http.client.HTTPConnection:
        while True:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return self._connected(question.left)
            if steady() - since < KEPT_SECONDS and connection.sock is not None:
                return connection
            with suppress(Exception):
                connection.close()

    def _connected(self, seconds: float) -> http.client.HTTPConnection:
        """Make a connection: straight to the service, for a proxy would take the time there is."""
        host, port, seconds = self._url.hostname or "", self._url.port, max(0.001, seconds)
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=seconds, context=self._trust)
        return http.client.HTTPConnection(host, port, timeout=seconds)


def _answer(response: http.client.HTTPResponse) -> Mapping[str, Any]:
    text = response.read(_MAX_ANSWER)
    if response.status != http.client.OK:
        raise http.client.HTTPException(f"{response.status} {response.reason}")
    answer: Mapping[str, Any] = json.loads(text)
    return answer


def _limit(connection: http.client.HTTPConnection, seconds: float) -> None:
    if seconds <= 0:
        raise TimeoutError("no time is left for the answer")
    connection.timeout = seconds
    if connection.sock is not None:
        connection.sock.settimeout(seconds)
