"""httpx, where a test puts something in place of the network.

In production the point lies on httpcore's pools, beneath httpx (:mod:`ldfi.fit.clients.httpx`). A
fake lets no request come so far. In a test the point therefore lies on the transport that answers:
the innermost one that a request passes through. Whatever an application puts in between (a
fallback, retries, a cache) is above the point in both, and names and failures are the same: they
are made by production's own.

Which transport answers is known of those of httpx itself. Of any other it is guessed by what it
holds, and learned from what it does: one that hands requests on is none that answers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Final, Protocol

import httpcore
import httpx
from httpx._transports.default import (
    AsyncResponseStream,
    ResponseStream,
    map_httpcore_exceptions,
)

from ldfi.fit import inject, patching
from ldfi.fit.clients.http import PASSED
from ldfi.fit.clients.httpx import site
from ldfi.fit.clients.httpx_failures import HttpxFailures, in_tasks, in_threads
from ldfi.fit.clients.httpx_slow import slowed
from ldfi.fit.inject import armed
from ldfi.fit.slow import Slow

SYNC: Final = in_threads(httpcore)
ASYNC: Final = in_tasks(httpcore)
SITE: Final = site(SYNC)
ASYNC_SITE: Final = site(ASYNC)

_OWN: Final = (
    httpx.HTTPTransport,
    httpx.AsyncHTTPTransport,
    httpx.MockTransport,
    httpx.ASGITransport,
    httpx.WSGITransport,
)
_BASES: Final = (httpx.BaseTransport, httpx.AsyncBaseTransport)
_SEAM: Final = "_fit_seam"
"""On functions of ours that see a request pass."""
_METHODS: Final = {httpx.Client: "handle_request", httpx.AsyncClient: "handle_async_request"}


class Call(Protocol):
    """What a test keeps of one call. ``passes``: it can be made to fail."""

    @property
    def passes(self) -> bool:
        """Return whether the call is a dependency, and not the test's own request."""

    def answered(self, response: httpx.Response) -> None:
        """Note the answer."""

    def handed_on(self) -> None:
        """Note that this was no call by itself: it was handed on, and seen further down."""


class Onlooker(Protocol):
    """Who wants to see calls."""

    def origin(self) -> Any:
        """Return where a call comes from that sets out now; None lets it be."""

    def call(
        self, origin: Any, transport: Any, request: httpx.Request
    ) -> AbstractContextManager[Call]:
        """Accompany a call, from where it leaves the application."""


@dataclass(slots=True)
class _Frame:
    """A request within a transport. ``answers``: this one is taken to answer it."""

    origin: Any
    answers: bool = False
    handed_on: bool = False


_frame: ContextVar[_Frame | None] = ContextVar("fit-httpx", default=None)


@contextmanager
def _within(frame: _Frame) -> Iterator[_Frame]:
    token = _frame.set(frame)
    try:
        yield frame
    finally:
        _frame.reset(token)


class Seams:
    """Sees every request of httpx pass its transports, and has faults take effect at the
    innermost."""

    def __init__(self, onlooker: Onlooker) -> None:
        self._onlooker = onlooker
        self._answering: dict[object, bool] = {}
        """What was learned: code of a transport → whether it answers by itself."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Watch the transports of all classes, also of those that are written meanwhile."""
        with ExitStack() as stack:

            def watch(owner: Any) -> None:
                for name in _METHODS.values():
                    if name in vars(owner):
                        own = owner in _OWN
                        stack.enter_context(patching.meanwhile(owner, name, self.around(name, own)))

            for base in _BASES:
                for owner in _descendants(base):
                    watch(owner)
                stack.enter_context(_told_of_subclasses(base, watch))
            for client, name in _METHODS.items():
                synchronous = name == "handle_request"
                wrap: Any = self._set_out if synchronous else self._set_out_async
                stack.enter_context(patching.meanwhile(client, "_send_single_request", wrap))
                wrap = self._chosen(name)
                stack.enter_context(patching.meanwhile(client, "_transport_for_url", wrap))
            yield

    def around(self, name: str, own: bool = False) -> Callable[[Any], Any]:
        """Make what wraps a transport's method of this name. ``own``: it is one of httpx's."""
        return self._sync(own) if name == "handle_request" else self._async(own)

    def _sync(self, own: bool) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def handle_request(transport: Any, request: httpx.Request) -> httpx.Response:
                seen = self._seen(transport, original, own)
                if seen is None:
                    return original(transport, request)  # type: ignore[no-any-return]
                with self._followed(*seen, transport, request, original) as (frame, call):
                    try:
                        answer = _struck(request) if frame.answers and call.passes else None
                    except httpx.TransportError as lost:
                        if _worked(request, lost):
                            with suppress(Exception):
                                original(transport, request).close()
                        raise
                    if answer is None or isinstance(answer, Slow):
                        with _marked(request, frame), _waited_for(answer) as slow:
                            answer = _slowed(slow, request, original(transport, request), SYNC)
                    call.answered(answer)
                    return answer

            return _seam(handle_request)

        return wrap

    def _async(self, own: bool) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            async def handle_async_request(
                transport: Any, request: httpx.Request
            ) -> httpx.Response:
                seen = self._seen(transport, original, own)
                if seen is None:
                    return await original(transport, request)  # type: ignore[no-any-return]
                with self._followed(*seen, transport, request, original) as (frame, call):
                    answer: Any = None
                    try:
                        if frame.answers and call.passes:
                            answer = await _struck_async(request)
                    except httpx.TransportError as lost:
                        if _worked(request, lost):
                            with suppress(Exception):
                                await (await original(transport, request)).aclose()
                        raise
                    if answer is None or isinstance(answer, Slow):
                        with _marked(request, frame), _waited_for(answer) as slow:
                            answered = await original(transport, request)
                            answer = _slowed(slow, request, answered, ASYNC)
                    call.answered(answer)
                    return answer  # type: ignore[no-any-return] # it is httpx's, or ours

            return _seam(handle_async_request)

        return wrap

    def _seen(self, transport: Any, original: Any, own: bool) -> tuple[_Frame, bool] | None:
        """Place a request that comes by. Returns its frame, and whether that is certain.

        None: it is nobody's business here, or it is the same call as further up.
        """
        above = _frame.get()
        if above is not None:
            above.handed_on = True
        origin = self._onlooker.origin() if above is None else above.origin
        if origin is None or (above is not None and above.answers):
            return None
        learned = True if own else self._answering.get(_code(original))
        answers = not _holds_another(transport) if learned is None else learned
        return _Frame(origin, answers), learned is not None

    @contextmanager
    def _followed(
        self, frame: _Frame, certain: bool, transport: Any, request: httpx.Request, original: Any
    ) -> Iterator[tuple[_Frame, Call]]:
        """Follow a request through a transport, and learn whether that answers by itself."""
        with ExitStack() as stack:
            call: Call = _NO_CALL
            if frame.answers or not certain:
                accompanied = self._onlooker.call(frame.origin, transport, request)
                call = stack.enter_context(accompanied)
            stack.enter_context(_within(frame))
            try:
                yield frame, call
                if not frame.handed_on:
                    self._answering.setdefault(_code(original), True)
            finally:
                if frame.handed_on:
                    self._answering[_code(original)] = False
                    if not frame.answers:
                        call.handed_on()

    def _set_out(self, original: Any) -> Any:
        def send(client: Any, request: httpx.Request) -> Any:
            origin = self._onlooker.origin()
            if origin is None:
                return original(client, request)
            with _within(_Frame(origin)):
                return original(client, request)

        return send

    def _set_out_async(self, original: Any) -> Any:
        async def send(client: Any, request: httpx.Request) -> Any:
            origin = self._onlooker.origin()
            if origin is None:
                return await original(client, request)
            with _within(_Frame(origin)):
                return await original(client, request)

        return send

    def _chosen(self, name: str) -> Callable[[Any], Any]:
        """Watch a transport that none of the wrappers is on: somebody has replaced its method."""

        def wrap(original: Any) -> Any:
            def transport_for_url(client: Any, url: httpx.URL) -> Any:
                transport = original(client, url)
                found = getattr(transport, name, None)
                if _frame.get() is None or getattr(found, _SEAM, None) is True:
                    return transport
                return _Watched(self, transport)

            return transport_for_url

        return wrap


class _Watched:
    """A transport of which nothing is known but that it is asked."""

    def __init__(self, seams: Seams, transport: Any) -> None:
        self._transport = transport
        self.handle_request = self._around(seams, "handle_request")
        self.handle_async_request = self._around(seams, "handle_async_request")

    def _around(self, seams: Seams, name: str) -> Any:
        found = getattr(self._transport, name, None)
        asked = found if hasattr(found, "__code__") or hasattr(found, "__func__") else None
        code = _code(asked if asked is not None else type(self._transport))

        def ask(_transport: Any, request: httpx.Request) -> Any:
            return found(request)  # type: ignore[misc] # it is what httpx would have called

        ask.__dict__[_CODE] = code
        wrapped = seams.around(name)(ask)
        return lambda request: wrapped(self._transport, request)


_CODE: Final = "_fit_code"


def _code(function: Any) -> object:
    """Tell functions apart that do different things; a closure is the same each time."""
    held = getattr(function, _CODE, None)
    plain = getattr(function, "__func__", getattr(function, "func", function))
    return held if held is not None else getattr(plain, "__code__", plain)


class _NoCall:
    passes = False

    def answered(self, response: httpx.Response) -> None:
        pass

    def handed_on(self) -> None:
        pass


_NO_CALL: Final = _NoCall()


def _seam(function: Any) -> Any:
    setattr(function, _SEAM, True)
    return function


def _descendants(base: Any) -> Iterator[Any]:
    for each in base.__subclasses__():
        yield each
        yield from _descendants(each)


@contextmanager
def _told_of_subclasses(base: Any, tell: Callable[[Any], None]) -> Iterator[None]:
    def init_subclass(cls: Any, /, **options: Any) -> None:
        super(base, cls).__init_subclass__(**options)
        tell(cls)

    if "__init_subclass__" in vars(base):
        yield  # by whoever was here before
        return
    base.__init_subclass__ = classmethod(init_subclass)
    try:
        yield
    finally:
        del base.__init_subclass__


def _holds_another(transport: Any) -> bool:
    """Guess whether a transport hands requests on: to its parent, or to one that it holds."""
    if isinstance(transport, _OWN) and type(transport) not in _OWN:
        return True
    held: list[Any] = list(getattr(transport, "__dict__", {}).values())
    for value in tuple(held):
        if isinstance(value, dict):
            held += value.values()
        elif isinstance(value, list | tuple):
            held += value
    return any(isinstance(value, _BASES) for value in held)


_UNHEARD: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.WriteError)


def _worked(request: httpx.Request, lost: httpx.TransportError) -> bool:
    """Return whether the callee does its work although the answer is lost: what is not idempotent
    (RFC 9110, section 9.2.2) and tried again is then done twice. Whoever was never reached does
    none."""
    return request.method in {"POST", "PATCH"} and not isinstance(lost, _UNHEARD)


def _struck(request: httpx.Request) -> Any:
    """Pass the point. Returns what a fault answers; None to go on, or what makes that slow."""
    if not armed():
        return None
    with map_httpcore_exceptions():
        hit = inject.through(SITE, None, _beneath(request))
    return _above(hit, ResponseStream) if isinstance(hit, httpcore.Response) else hit


async def _struck_async(request: httpx.Request) -> Any:
    if not armed():
        return None
    fault = inject.through_async(ASYNC_SITE, None, _beneath(request))
    if fault is None:
        return None
    with map_httpcore_exceptions():
        hit = await fault
    return _above(hit, AsyncResponseStream) if isinstance(hit, httpcore.Response) else hit


@contextmanager
def _waited_for(slow: Slow | None) -> Iterator[Slow | None]:
    """Have the proof of a slow body end with the call, whatever becomes of it."""
    try:
        yield slow
    finally:
        if slow is not None:
            slow.over()


def _slowed(
    slow: Slow | None, request: httpx.Request, response: httpx.Response, failures: HttpxFailures
) -> httpx.Response:
    """Have the body of an answer come slowly, where it is to."""
    if slow is None:
        return response
    patience = request.extensions.get("timeout", {}).get("read")
    headers = response.headers.raw
    body = slowed(slow, response.status_code, headers, response.stream, patience, failures.late)
    if body is None:
        return response
    stream: Any = (ResponseStream if failures is SYNC else AsyncResponseStream)(body)
    extensions = response.extensions
    return httpx.Response(
        response.status_code, headers=headers, stream=stream, extensions=extensions
    )


def name(service: str, request: httpx.Request) -> str:
    """Name the point of a request, as production does."""
    return SITE.name(service, _beneath(request))


def _beneath(request: httpx.Request) -> httpcore.Request:
    """Make the request that httpx would hand to httpcore; its body is of no use to a fault."""
    url = request.url
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        extensions=request.extensions,
    )


def _above(hit: httpcore.Response, stream: Any) -> httpx.Response:
    return httpx.Response(
        hit.status, headers=hit.headers, stream=stream(hit.stream), extensions=hit.extensions
    )


@contextmanager
def _marked(request: httpx.Request, frame: _Frame) -> Iterator[None]:
    """Have httpcore's point let a request through that has passed its own: it is the same call."""
    if not frame.answers or PASSED in request.extensions:
        yield
        return
    request.extensions[PASSED] = True
    try:
        yield
    finally:
        request.extensions.pop(PASSED, None)


class _Untold:
    """Nobody keeps anything of the call; it can be made to fail."""

    passes = True

    def answered(self, response: httpx.Response) -> None:
        pass

    def handed_on(self) -> None:
        pass


class _Unwatched:
    def origin(self) -> bool | None:
        return armed() or None

    @contextmanager
    def call(self, *_: Any) -> Iterator[Call]:
        yield _Untold()


def patched() -> AbstractContextManager[None]:
    """Make every call through httpx an injection point as long as this lasts."""
    return seen(_Unwatched())


@contextmanager
def seen(onlooker: Onlooker) -> Iterator[None]:
    """Show every call through httpx to ``onlooker``, and have faults take effect there, as long
    as this lasts."""
    seams = Seams(onlooker)
    with seams.in_place():
        patching.when_imported("pytest_httpx._httpx_mock", partial(_pytest_httpx, seams))
        patching.when_imported("vcr.stubs.httpx_stubs", partial(_vcrpy, seams))
        yield


def _pytest_httpx(seams: Seams) -> None:
    """Put a seam where pytest-httpx, which takes the place of httpx's transports, is asked."""
    mock: Any = import_module("pytest_httpx._httpx_mock").HTTPXMock

    def within(name: str) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def asked(mock: Any, transport: Any, request: httpx.Request) -> Any:
                around = seams.around(name, own=True)(partial(original, mock))
                return around(transport, request)

            return asked

        return wrap

    patching.put(mock, "_handle_request", within("handle_request"))
    patching.put(mock, "_handle_async_request", within("handle_async_request"))


def _vcrpy(seams: Seams) -> None:
    """Put a seam where vcrpy, which takes the place of httpx's transports, is asked."""
    stubs: Any = import_module("vcr.stubs.httpx_stubs")

    def within(name: str) -> Callable[[Any], Any]:
        def wrap(original: Any) -> Any:
            def asked(cassette: Any, real: Any, transport: Any, request: Any, lib: Any) -> Any:
                def play(transport: Any, request: Any) -> Any:
                    return original(cassette, real, transport, request, lib)

                return seams.around(name, own=True)(play)(transport, request)

            return asked

        return wrap

    patching.put(stubs, "_vcr_handle_request", within("handle_request"))
    patching.put(stubs, "_vcr_handle_async_request", within("handle_async_request"))
