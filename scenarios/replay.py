"""Replayed traffic: sends a request class's exemplar requests against staging, and judges them.

For a class without traffic of its own, or a system without users. Every request carries
``x-ldfi-replay: 1``, a made-up device, and a trace id that the driver itself chose, so it knows
which trace its outcome belongs to. Credentials that an exemplar was recorded with are never sent.
The query string is sent as it is: record exemplars without secrets in it.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import quote

import httpx
from jsonpath_rfc9535 import JSONPathError, JSONPathQuery
from jsonpath_rfc9535 import compile as compile_json_path

from ldfi.errors import InvalidReplay
from ldfi.fit.device import DEVICE_HEADER

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""Those that RFC 9110, section 9.2.1 calls safe (but for TRACE, which shows headers)."""

QUERY: Final = "%!$&'()*+,;=:@/?~[]"
"""Characters of a raw query that are sent as they are."""
_METHOD = re.compile(r"[A-Z]+(-[A-Z]+)*")
_SENSITIVE = re.compile(
    r"auth|cookie|token|secret|session|passw|credential|signature|api-?key|access-?key|csrf|xsrf|jwt"
    r"|client-cert|^x-amz-|^x-goog-",
    re.IGNORECASE,
)
_OURS = frozenset(
    {"x-ldfi-replay", DEVICE_HEADER, "traceparent", "tracestate", "baggage", "b3", "uber-trace-id"}
)
_OF_ONE_CONNECTION = re.compile(
    r"host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|content-.*"
    r"|accept-encoding|forwarded|x-forwarded-.*|via|if-.*",
    re.IGNORECASE,
)


def _may_be_sent(header: str) -> bool:
    name = header.lower()
    if name in _OURS or name.startswith("x-b3-") or _OF_ONE_CONNECTION.fullmatch(name):
        return False
    return not _SENSITIVE.search(name)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """One request as it was recorded. ``query`` is raw, without ``?``; there is no body."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def replayable_headers(self) -> dict[str, str]:
        """Keep the headers without credentials, other traces, and what belongs to one
        connection."""
        return {name: value for name, value in self.headers.items() if _may_be_sent(name)}


UNREACHABLE: Final = "unreachable"
"""The code of a failure without any answer."""

ANYTHING: Final = object()
"""What an assertion on a body may ask for: whatever, as long as it is not null."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a good answer looks like; all of it must hold.

    ``status``: the statuses that are good. ``body_contains``: text in the body. ``body_matches``: a
    regular expression that is found in it. ``json_path``: a query (RFC 9535) on a JSON body; it
    must find something, and all it finds must equal ``equals`` (:data:`ANYTHING`: must not be
    null). ``max_seconds``: until the whole answer is there. ``degraded_matches``: a regular
    expression that is found in the body of an answer which is accepted although something is
    missing from it. Raises :class:`InvalidReplay`.
    """

    status: tuple[int, ...] | range = range(200, 300)
    body_contains: str | None = None
    json_path: str | None = None
    equals: object = ANYTHING
    max_seconds: float | None = None
    body_matches: str | None = None
    degraded_matches: str | None = None

    def __post_init__(self) -> None:
        if self.json_path is not None:
            _compiled(self.json_path)
        for expression in (self.body_matches, self.degraded_matches):
            try:
                re.compile(expression or "")
            except re.error as error:
                raise InvalidReplay(
                    f"{expression!r} is not a regular expression: {error}"
                ) from error

    def failure(self, status: int, body: str, seconds: float) -> str | None:
        """Name the failure of an answer that is not good; None for a good one."""
        missed = self.missed(status, body, seconds)
        return None if missed is None else missed.code

    def missed(self, status: int, body: str, seconds: float) -> Missed | None:
        """Return what of it an answer does not keep, and why; None for a good one."""
        if status not in self.status:
            return Missed(f"status-{status}", f"status {status}, not {_statuses(self.status)}")
        if self.body_contains is not None and self.body_contains not in body:
            return Missed("body", f"the body does not contain {_cut(self.body_contains)}")
        if self.body_matches is not None and not re.search(self.body_matches, body):
            return Missed("body", f"the body does not match {_cut(self.body_matches)}")
        if self.json_path is not None:
            why = self._not_found(self.json_path, body)
            if why is not None:
                return Missed("json-path", why)
        if self.max_seconds is not None and seconds > self.max_seconds:
            return Missed("slow", f"took {seconds:.3f} s, more than {self.max_seconds:g} s")
        return None

    def degraded(self, body: str) -> bool:
        """Return whether something is missing from an answer that is accepted."""
        return self.degraded_matches is not None and bool(re.search(self.degraded_matches, body))

    def _not_found(self, path: str, body: str) -> str | None:
        try:
            found = _compiled(path).find(json.loads(body)).values()
        except (ValueError, RecursionError):
            return f"{path}: the body is not JSON, or nested too deep"
        except JSONPathError as error:
            return f"{path}: {error}"
        if not found:
            return f"{path} finds nothing"
        for value in found:
            if not _same(value, self.equals):
                wanted = "" if self.equals is ANYTHING else f", not {_cut(self.equals)}"
                return f"{path} finds {_cut(value)}{wanted}"
        return None


@dataclass(frozen=True, slots=True)
class Missed:
    """What an answer did not keep: a short ``code`` that many share, and ``why`` in words."""

    code: str
    why: str


MOST_SHOWN: Final = 5
"""Failures of which it is told why each of them is one."""


class Failures:
    """How often requests failed, by reason, and why the first few did."""

    def __init__(self) -> None:
        self.reasons: Counter[str] = Counter()
        self.shown: list[str] = []

    def take(self, request: str, missed: Missed) -> None:
        """Count one. ``request``: what was asked for, as people read it."""
        self.reasons[missed.code] += 1
        line = f"{request}: {missed.why}"
        if len(self.shown) < MOST_SHOWN and line not in self.shown:
            self.shown.append(line)


LENIENT = Assertion(status=range(100, 500))
"""Where nothing is asserted. An answer of 200 may still hold an error that the user sees."""


class Sent(NamedTuple):
    """What became of one request. ``duration`` in seconds; ``degraded``: something was missing from
    a good answer."""

    trace_id: str
    device: str
    success: bool
    error_code: str | None
    duration: float
    degraded: bool


class Replayer:
    """Sends exemplars in turn, ``rate_per_second`` at most, each of ``devices`` once at a time.

    ``target_url``: where staging is; a path in it comes before the exemplars' own. ``timeout``:
    seconds for one whole answer. Redirects are not followed. Raises :class:`InvalidReplay` for an
    exemplar whose method is not declared safe, or that would leave the target.

    The devices are not people's: their names are ``replay-0`` and so on, in clear. The outcomes
    carry the same names.
    """

    def __init__(
        self,
        target_url: str,
        exemplars: Sequence[Exemplar],
        rate_per_second: float,
        devices: int = 200,
        assertion: Assertion | None = None,
        safe_methods: Collection[str] = SAFE_METHODS,
        timeout: float = 10.0,
    ) -> None:
        if not exemplars:
            raise InvalidReplay("no exemplars: there is nothing to replay")
        if not 0 < rate_per_second <= 10_000:
            raise InvalidReplay(f"{rate_per_second} requests a second: give 0 < rate <= 10000")
        if devices < 1:
            raise InvalidReplay(f"{devices} devices: give at least one")
        self._requests = [_prepared(target_url, each, safe_methods) for each in exemplars]
        self.target = target_url
        self.rate = rate_per_second
        self._interval = 1 / rate_per_second
        self._free = deque(f"replay-{number}" for number in range(devices))
        self._devices = devices
        self._assertion = assertion or LENIENT
        self._timeout = timeout
        self.failures = Failures()

    async def run(self, sink: Callable[[Sent], None], stop: asyncio.Event) -> int:
        """Send until ``stop`` is set, then wait for the last answers; says how many were sent.

        Each answer, or its absence, goes to ``sink``. One is sent per interval of
        1/rate. What could not be sent in time (all devices busy, this process too slow) is left
        out, never made up for.
        """
        limits = httpx.Limits(max_connections=self._devices)
        sent = 0
        async with (
            httpx.AsyncClient(limits=limits, timeout=self._timeout) as client,
            asyncio.TaskGroup() as answers,
        ):
            due = time.monotonic()
            while not stop.is_set():
                if self._free:
                    answers.create_task(self._one(client, sent, self._free.popleft(), sink))
                    sent += 1
                due = _next_slot(due, self._interval, time.monotonic())
                await _pause(stop, due - time.monotonic())
        return sent

    async def _one(
        self,
        client: httpx.AsyncClient,
        number: int,
        device: str,
        sink: Callable[[Sent], None],
    ) -> None:
        turn = number + number // self._devices  # or a device would always send the same one
        request = _marked(self._requests[turn % len(self._requests)], device)
        trace_id = request.headers["traceparent"].split("-")[1]
        started = time.monotonic()
        try:
            missed, degraded = await self._answered(client, request, started)
        finally:
            self._free.append(device)
        duration = time.monotonic() - started
        success = missed is None
        error_code = missed.code if missed is not None else None
        if missed is not None:
            self.failures.take(f"{request.method} {request.url.raw_path.decode()}", missed)
        sink(Sent(trace_id, device, success, error_code, duration, success and degraded))

    async def _answered(
        self, client: httpx.AsyncClient, request: httpx.Request, started: float
    ) -> tuple[Missed | None, bool]:
        """Send the request, and say what failed; None for a good answer, and whether something
        was missing from it."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await client.send(request, follow_redirects=False)
        except (TimeoutError, httpx.TimeoutException):
            return Missed("timeout", f"no whole answer within {self._timeout:g} s"), False
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            return Missed(UNREACHABLE, f"no answer: {why}"), False
        seconds = time.monotonic() - started
        asserted, body = self._assertion, response.text
        return asserted.missed(response.status_code, body, seconds), asserted.degraded(body)


def _next_slot(due: float, interval: float, now: float) -> float:
    """Find the slot after ``due``; when that is past already, a whole interval from now."""
    following = due + interval
    return following if following > now else now + interval


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(seconds, 0)):
            await stop.wait()
    except TimeoutError:
        return


def _prepared(target_url: str, exemplar: Exemplar, safe: Collection[str]) -> httpx.Request:
    method = exemplar.method.upper()
    if method not in {each.upper() for each in safe} or not _METHOD.fullmatch(method):
        raise InvalidReplay(
            f"{method} {exemplar.path}: {method!r} is not declared safe; sending it again may "
            f"change something. Declared safe: {', '.join(safe)}"
        )
    if not exemplar.path.startswith("/"):
        raise InvalidReplay(f"{exemplar.path!r} is not a path; it begins with a slash")
    try:
        target = httpx.URL(target_url)
        query = quote(exemplar.query, safe=QUERY).encode() or None
        url = target.copy_with(path=target.path.rstrip("/") + exemplar.path, query=query)
        request = httpx.Request(method, url, headers=exemplar.replayable_headers())
    except (httpx.InvalidURL, ValueError) as error:
        raise InvalidReplay(f"{exemplar} cannot be sent to {target_url!r}: {error}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InvalidReplay(f"{target_url!r} is not a target; give a URL of http or https")
    return request


def _marked(request: httpx.Request, device: str) -> httpx.Request:
    """Return the request a trace of its own (W3C Trace Context, sampled) and what marks a
    replay."""
    marks = {
        "x-ldfi-replay": "1",
        DEVICE_HEADER: device,
        "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-01",
    }
    return httpx.Request(request.method, request.url, headers={**request.headers, **marks})


@lru_cache(maxsize=256)
def _compiled(path: str) -> JSONPathQuery:
    try:
        return compile_json_path(path)
    except JSONPathError as error:
        raise InvalidReplay(
            f"{path!r} is not a JSONPath (RFC 9535), such as '$.rows[0].title': {error}"
        ) from error


def _same(value: object, expected: object) -> bool:
    """Compare as JSON does: true is not 1."""
    if expected is ANYTHING:
        return value is not None
    return value == expected and isinstance(value, bool) == isinstance(expected, bool)


def _statuses(good: tuple[int, ...] | range) -> str:
    if isinstance(good, range):
        return f"{good.start} to {good.stop - 1}"
    return " or ".join(map(str, good))


def _cut(value: object) -> str:
    """Show a value in a line, however long it is."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return repr(text) if isinstance(value, str) and len(text) < 60 else text[:60]
