"""The edge's line to the control plane: two threads that never block a request or raise into one.

One *listens*: it holds a stream of offers, the rules as they are, upon which nobody may act yet.
The other *keeps*: while somebody is enrolled here, or may be, it fetches the rules as a lease, over
and over, and reports how many devices this edge has treated. A service that knows no streams
answers the first as it answers the second, and then the first does all of it.

While the line is down both try again, ever more slowly, and the lease runs out by itself. A forked
worker starts over: a name, counts and threads of its own, and no lease before it was given one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import secrets
import socket
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.client import HTTPResponse
from typing import Final
from urllib.parse import quote
from weakref import WeakSet

from opentelemetry import context

from ldfi.fit.allowance_requests import Asks, Question
from ldfi.fit.clock import steady
from ldfi.fit.device import Devices
from ldfi.fit.protocol.allowance import Allowances, Enrolled, written
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.errors import MalformedRules
from ldfi.fit.protocol.rules import ARMED_WAIT_SECONDS, Lease, read_lease

_log = logging.getLogger("fit")

WAIT_SECONDS: Final = 2.0

SHORTEST_SECONDS: Final = 0.1
"""From one question to the next, should the control plane not make us wait as it was asked to."""

RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0
"""How much later than asked for an answer may come."""

SILENT_SECONDS: Final = 25.0
"""A stream on which nothing came for so long is dead; the service says something every ten."""

ASKING_THREADS: Final = 4
"""Threads that ask for an event loop; they are started by the first devices that are asked for."""

MAX_DOCUMENT: Final = 4 * 1024 * 1024
"""Bytes. More is no answer to this question."""

_QUIET: Final = Lease()


class RulesPoll:
    """Holds the current lease and the allowances. ``url`` is the service's, ``token`` its key."""

    allowances: Allowances
    asks: Asks

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._stopped = threading.Event()
        self._begin()
        _polls.add(self)

    @classmethod
    def from_environment(cls) -> RulesPoll | None:
        """Make a poll of ``LDFI_URL`` and ``LDFI_TOKEN``; None where either is missing or no
        HTTP URL."""
        url, token = os.environ.get("LDFI_URL"), os.environ.get("LDFI_TOKEN")
        if not url or not token:
            return None
        if not url.startswith(("http://", "https://")):
            _log.error("the edge stays quiet: LDFI_URL is %r; write http:// or https://", url)
            return None
        return cls(url, token)

    def _begin(self) -> None:
        self.edge = secrets.token_hex(8)
        self.allowances = Allowances()
        self.asks = Asks(self._url, self._token, self.edge)
        self._lease = _QUIET
        self._answer = (b"", _QUIET)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._keeper: threading.Thread | None = None
        self._offered = False
        self._stream: HTTPResponse | None = None
        self._needed = threading.Event()
        self.threads = ThreadPoolExecutor(ASKING_THREADS, "fit-ask")

    def lease(self) -> Lease:
        """Return the rules in force, or on offer (their lease has run out, or is none yet); the
        empty lease where there is neither."""
        lease = self._lease
        return lease if lease.rules and (self._offered or lease.ends > steady()) else _QUIET

    def hold(self, lease: Lease) -> None:
        """Put a lease in force in place of the current one; nothing happens once stopped."""
        with self._lock:
            if not self._stopped.is_set() and not _older(lease.version, self._lease.version):
                self.allowances.renew(lease.rules)
                self._lease = lease

    def offer(self, rules: Lease) -> None:
        """Know these rules, and go on acting upon the current lease for as long as it lasts."""
        with self._lock:
            if not self._stopped.is_set() and not _older(rules.version, self._lease.version):
                self.allowances.renew(rules.rules)
                self._lease = replace(rules, ends=self._lease.ends)
                self._offered = True
        if self.allowances.busy:
            self.keep()

    @contextlib.contextmanager
    def asking(self, experiment: str, arm: Arm, version: str) -> Iterator[Question | None]:
        """Begin to ask for a device, as :meth:`ldfi.fit.allowance_requests.Asks.asking` does; what
        came of it is told the service afterwards."""
        try:
            with self.asks.asking(experiment, arm, version) as question:
                yield question
        finally:
            self.keep()

    def ask(self, question: Question) -> bool:
        """Ask whether one more device may be enrolled, for 20 ms at most. Raises nothing."""
        granted = self.asks.ask(question)
        if granted is None:
            return False
        with self._lock:
            if self._lease.version != question.version or self._stopped.is_set():
                return False
            self._lease = replace(self._lease, ends=max(self._lease.ends, granted.ends))
        return True

    def start(self) -> None:
        """Start listening; does nothing when that has been started already."""
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                thread = threading.Thread(target=self._run, name="fit-rules", daemon=True)
                thread.start()
                self._thread = thread

    def keep(self) -> None:
        """Have the lease kept, and told what is to be told: somebody is enrolled, or an ask has
        come to an end."""
        self._needed.set()
        if self._keeper is None:
            self._start_keeper()

    def _start_keeper(self) -> None:
        with self._lock:
            if self._keeper is None and not self._stopped.is_set():
                keeper = threading.Thread(target=self._run_keeper, name="fit-lease", daemon=True)
                keeper.start()
                self._keeper = keeper

    def stop(self) -> None:
        """Stop polling and drop the lease."""
        with self._lock:
            self._stopped.set()
            self._lease = _QUIET
        self._needed.set()
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.asks.close()
        with contextlib.suppress(Exception):  # it may have ended meanwhile
            if self._stream is not None:
                _hang_up(self._stream)

    def _run(self) -> None:
        self._again_and_again(self._listen)

    def _run_keeper(self) -> None:
        self._again_and_again(self._keep_up)

    def _again_and_again(self, work: Callable[[], None]) -> None:
        context.attach(context.set_value("suppress_instrumentation", True))
        failures = 0
        while not self._stopped.is_set():
            began = steady()
            try:
                work()
            except Exception as error:
                # a stream that was held for long and breaks is the first failure, not one more
                failures = 1 if steady() - began > LONGEST_RETRY_SECONDS else failures + 1
                self._complain(error, failures)
            else:
                failures = 0
            pause = _backoff(failures) if failures else SHORTEST_SECONDS - (steady() - began)
            self._stopped.wait(max(0.0, pause))

    def _complain(self, error: Exception, failures: int) -> None:
        level = logging.WARNING if failures == 1 else logging.DEBUG
        with contextlib.suppress(Exception):  # a host's log handler may fail
            _log.log(level, "no rules from %s: %s", self._url, error)

    def _listen(self) -> None:
        """Hold a stream of offers until it ends. An older service answers with a lease instead."""
        report, settled, asked_at = self.allowances.report(), self.asks.settled, steady()
        try:
            with self._open(report, settled, "text/event-stream, application/json;q=0.9") as answer:
                self._stream = answer
                self.asks.answered = answer.headers.get_content_type() == "text/event-stream"
                if not self.asks.answered:
                    self._take(answer.read(MAX_DOCUMENT + 1), report, settled, asked_at)
                    return
                for body in _events(answer):
                    self.offer(self._read(body))
        finally:
            self._offered, self._stream = False, None

    def _keep_up(self) -> None:
        """Fetch a lease and report, while there is anything to keep or to tell."""
        if not (self.allowances.busy or self.asks.untold) or not self.asks.answered:
            self._needed.wait()
            self._needed.clear()
            return
        self._ask()

    def _ask(self) -> None:
        """Report, and fetch a lease."""
        # first what is settled, then who is enrolled: that of these asks is in it
        settled = self.asks.settled
        report, asked_at = self.allowances.report(), steady()
        with self._open(report, settled, "application/json") as answer:
            body = answer.read(MAX_DOCUMENT + 1)
        self._take(body, report, settled, asked_at)

    def _take(
        self, body: bytes, report: dict[str, Enrolled], settled: int, asked_at: float
    ) -> None:
        try:
            lease = self._read(body)
        except MalformedRules:
            self._lease = _QUIET  # perhaps it said stop
            raise
        self.allowances.settle(report)
        self.asks.told(settled)
        self.hold(replace(lease, ends=asked_at + lease.ends))

    def _open(self, report: dict[str, Enrolled], settled: int, accept: str) -> HTTPResponse:
        wait = self._wait()
        query = f"version={quote(self._lease.version, safe='')}&wait={wait}&edge={self.edge}"
        query += "".join(f"&{name}={value}" for name, value in written(report).items())
        streams = accept.startswith("text")
        if not streams:  # services that know no streams refuse parameters that they do not know
            query += f"&asked={settled}&late={self.asks.late()}" if self.asks.answered else ""
        request = urllib.request.Request(  # noqa: S310 - the operator's own URL
            f"{self._url}/api/v1/edge/rules?{query}",
            headers={
                "Authorization": f"Bearer {self._token}",
                "Accept": accept,
                "Ldfi-Devices": Devices.from_environment().kinds,
            },
        )
        timeout = SILENT_SECONDS if streams else wait + ANSWER_SECONDS
        answer: HTTPResponse = _opener.open(request, timeout=timeout)
        return answer

    def _wait(self) -> float:
        if self.allowances.urgent:
            return 0.0
        return ARMED_WAIT_SECONDS if self._lease.rules else WAIT_SECONDS

    def _read(self, body: bytes) -> Lease:
        """Read rules whose lease begins at nought; those that have not changed, byte for byte, are
        not built anew."""
        known, lease = self._answer
        if body != known:
            lease = _parse(body)
            self._answer = (body, lease)
        return lease


def _hang_up(stream: HTTPResponse) -> None:
    """End a stream that another thread waits for."""
    with socket.socket(fileno=os.dup(stream.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)


def _events(stream: HTTPResponse) -> Iterator[bytes]:
    """Read the data of each event of a stream (WHATWG, *Server-sent events*)."""
    data: list[bytes] = []
    size = 0
    while line := stream.readline(MAX_DOCUMENT + 1):
        size += len(line)
        if size > MAX_DOCUMENT:
            raise MalformedRules(f"rules not understood: more than {MAX_DOCUMENT} bytes")
        line = line.rstrip(b"\r\n")
        if line.startswith(b"data:"):
            data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line:
            if data:
                yield b"\n".join(data)
            data, size = [], 0


def _older(version: str, than: str) -> bool:
    """Return whether a version came before another one of the same start of the service."""
    (epoch, _, number), (known, _, newest) = version.rpartition("-"), than.rpartition("-")
    numbers = number.isdecimal() and newest.isdecimal()
    return epoch == known and numbers and int(number) < int(newest)


def _parse(body: bytes) -> Lease:
    """Parse the lease in an answer, as if it had been asked for at the beginning of time."""
    if len(body) > MAX_DOCUMENT:
        raise MalformedRules(f"rules not understood: more than {MAX_DOCUMENT} bytes")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise MalformedRules(f"rules not understood: {error}") from error
    return read_lease(document, asked_at=0.0)


def _backoff(failures: int) -> float:
    """Draw how many seconds to wait: it doubles from half a second to ten, and is between half
    of that and all, so that many edges do not come back at the same moment (exponential backoff
    with "equal jitter")."""
    longest = min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(failures - 1, 10))
    return random.uniform(longest / 2, longest)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """The token goes to the control plane and to nobody it might name."""

    def redirect_request(self, *_args: object, **_named: object) -> None:
        return None


_opener = urllib.request.build_opener(_NoRedirects)
_polls: WeakSet[RulesPoll] = WeakSet()


def _begin_again() -> None:
    for poll in list(_polls):
        poll._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
