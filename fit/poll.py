"""The edge's line to the control plane: a long poll in a thread of its own.

It never blocks a request and never raises into one. It fetches the rules, as a lease, and reports
how many devices this edge has treated. While the line is down it tries again, ever more slowly, and
the lease it holds runs out by itself. A forked worker starts over: a name, counts and a thread of
its own, and no lease before it has been given one.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import secrets
import threading
import urllib.request
from dataclasses import replace
from typing import Final
from urllib.parse import quote
from weakref import WeakSet

from opentelemetry import context

from ldfi.fit.allowance import Allowances, Enrolled, written
from ldfi.fit.clock import steady
from ldfi.fit.errors import MalformedRules
from ldfi.fit.rules import Lease, read_lease

_log = logging.getLogger("fit")

WAIT_SECONDS: Final = 2.0
ARMED_WAIT_SECONDS: Final = 1.0
"""While rules are armed: what was treated is never older than this at the control plane."""

SHORTEST_SECONDS: Final = 0.1
"""From one question to the next, should the control plane not make us wait as it was asked to."""

RETRY_SECONDS: Final = 0.5
LONGEST_RETRY_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 5.0
"""How much later than asked for an answer may come."""

MAX_DOCUMENT: Final = 4 * 1024 * 1024
"""Bytes. More is no answer to this question."""

_QUIET: Final = Lease()


class RulesPoll:
    """Holds the current lease and the allowances. ``url`` is the service's, ``token`` its key."""

    allowances: Allowances

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
        self._lease = _QUIET
        self._answer = (b"", _QUIET)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def lease(self) -> Lease:
        """Return the rules in force; the empty lease when the last one has run out."""
        lease = self._lease
        return lease if lease.rules and lease.ends > steady() else _QUIET

    def hold(self, lease: Lease) -> None:
        """Put a lease in force in place of the current one; nothing happens once stopped."""
        with self._lock:
            if not self._stopped.is_set():
                self.allowances.renew(lease.rules)
                self._lease = lease

    def start(self) -> None:
        """Start polling; does nothing when it has been started already."""
        if self._thread is None:
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._stopped.is_set():
                thread = threading.Thread(target=self._run, name="fit-rules", daemon=True)
                thread.start()
                self._thread = thread

    def stop(self) -> None:
        """Stop polling and drop the lease."""
        with self._lock:
            self._stopped.set()
            self._lease = _QUIET

    def _run(self) -> None:
        context.attach(context.set_value("suppress_instrumentation", True))
        failures = 0
        while not self._stopped.is_set():
            asked_at = steady()
            try:
                self._ask()
            except Exception as error:
                failures += 1
                self._complain(error, failures)
            else:
                failures = 0
            pause = _backoff(failures) if failures else SHORTEST_SECONDS - (steady() - asked_at)
            self._stopped.wait(max(0.0, pause))

    def _complain(self, error: Exception, failures: int) -> None:
        level = logging.WARNING if failures == 1 else logging.DEBUG
        with contextlib.suppress(Exception):  # a host's log handler may fail
            _log.log(level, "no rules from %s: %s", self._url, error)

    def _ask(self) -> None:
        report = self.allowances.report()
        asked_at = steady()
        body = self._fetch(report)
        try:
            lease = self._read(body, asked_at)
        except MalformedRules:
            self._lease = _QUIET  # perhaps it said stop
            raise
        self.allowances.settle(report)
        self.hold(lease)

    def _fetch(self, report: dict[str, Enrolled]) -> bytes:
        wait = self._wait()
        query = f"version={quote(self._lease.version, safe='')}&wait={wait}&edge={self.edge}"
        query += "".join(f"&{name}={value}" for name, value in written(report).items())
        request = urllib.request.Request(  # noqa: S310 - the operator's own URL
            f"{self._url}/api/v1/edge/rules?{query}",
            headers={"Authorization": f"Bearer {self._token}", "Accept": "application/json"},
        )
        with _opener.open(request, timeout=wait + ANSWER_SECONDS) as response:
            body: bytes = response.read(MAX_DOCUMENT + 1)
        return body

    def _wait(self) -> float:
        if self.allowances.urgent:
            return 0.0
        return ARMED_WAIT_SECONDS if self._lease.rules else WAIT_SECONDS

    def _read(self, body: bytes, asked_at: float) -> Lease:
        """Read an answer; rules that have not changed, byte for byte, are not built anew."""
        known, lease = self._answer
        if body != known:
            lease = _parse(body)
            self._answer = (body, lease)
        return replace(lease, ends=asked_at + lease.ends)


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
