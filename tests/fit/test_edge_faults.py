"""A fault in ``fit`` itself never breaks the host's request.

Every function and method of ours that the edge calls while it passes a request on is made to raise,
one after the other and each together with the one that swallows. They are found by watching a
request, not listed here, so that new code is under test as soon as it is written.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ldfi import fit
from ldfi.fit.clock import steady
from ldfi.fit.protocol.context import encode
from ldfi.fit.protocol.rules import Lease
from ldfi.fit.protocol.scenario import scenario_of
from ldfi.fit.runtime import Runtime, activate
from tests.fit.applications import KEYS
from tests.fit.edges import Held, a_rule

PACKAGE = Path(fit.__file__).parent
OURS = [
    importlib.import_module(f"ldfi.fit.{folder}{path.stem}")
    for folder in ("", "protocol.")
    for path in sorted((PACKAGE / folder.rstrip(".")).glob("[a-z]*.py"))
]
RIMS = {"__call__", "__init__", "start"}  # the rim, what runs at start-up, what the test overrides
SIGNED = encode(KEYS, scenario_of("d1"), "treatment", int(time.time()) + 3600, [])
INBOUND = {
    "none": "",
    "plain": "user=u1",
    "foreign": "user=u1,fit=1.k.e.t.1.e.x",
    "hidden": "user=u1,%66it=1.2",
    "signed": f"user=u1,fit={SIGNED}",
}


class BoomError(RuntimeError):
    pass


def boom(*_: Any, **__: Any) -> Any:
    raise BoomError


def through_asgi(poll: Held, inbound: str) -> str:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    headers = [(b"x-device-id", b"d1"), (b"x-device-type", b"tv")]
    if inbound:
        headers.append((b"baggage", inbound.encode()))
    scope = {"type": "http", "method": "GET", "path": "/boot", "query_string": b"a=b"}
    edge: Any = fit.EdgeMiddleware(app, poll)
    asyncio.run(edge({**scope, "headers": headers}, None, None))
    return ",".join(v.decode() for name, v in seen[0]["headers"] if name == b"baggage")


def through_wsgi(poll: Held, inbound: str) -> str:
    seen: list[Any] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        seen.append(dict(environ))
        return []

    environ = {"HTTP_X_DEVICE_ID": "d1", "HTTP_X_DEVICE_TYPE": "tv", "REQUEST_METHOD": "GET"}
    environ |= {"PATH_INFO": "/boot", "QUERY_STRING": "a=b", "wsgi.url_scheme": "http"}
    environ |= {"HTTP_HOST": "x"} | ({"HTTP_BAGGAGE": inbound} if inbound else {})
    fit.WSGIEdgeMiddleware(app, poll)(environ, boom)
    found: str = seen[0].get("HTTP_BAGGAGE", "")
    return found


THROUGH = {"asgi": through_asgi, "wsgi": through_wsgi}


def fresh() -> Held:
    """An edge that remembers nothing of earlier tests, with caches that are empty."""
    for module in OURS:
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()
    activate(Runtime("api", KEYS))
    poll = Held()
    poll.hold(Lease((a_rule("e0", 0.0, 0.0), a_rule("e1")), steady() + 60))
    return poll


def called() -> dict[str, set[str]]:
    """The qualified names of our functions that run while requests pass, by module."""
    names: dict[str, set[str]] = {module.__name__: set() for module in OURS}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module in names:
            names[module].add(frame.f_code.co_qualname)

    for through in THROUGH.values():
        for inbound in INBOUND.values():
            poll = fresh()
            sys.setprofile(watch)
            try:
                through(poll, inbound)
            finally:
                sys.setprofile(None)
    activate(None)
    return names


def targets() -> Iterator[tuple[str, str]]:
    for module, names in called().items():
        for name in sorted(names):
            if "<" not in name and name.rpartition(".")[2] not in RIMS:
                yield module, name


TARGETS = list(targets())


def test_the_watching_sees_the_edge_work() -> None:
    assert len(TARGETS) >= 25
    assert ("ldfi.fit.protocol.allowance", "Allowances.admit") in TARGETS
    assert ("ldfi.fit.runtime", "Runtime.verify") in TARGETS
    assert ("ldfi.fit.protocol.predicate", "Predicate.holds") in TARGETS


def break_down(patch: pytest.MonkeyPatch, module: str, name: str) -> None:
    """Make a function raise, under every name that any of our modules imported it as."""
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    original = inspect.getattr_static(owner, last)
    patch.setattr(owner, last, property(boom) if isinstance(original, property) else boom)
    for each in OURS if not path else []:
        for alias, value in vars(each).copy().items():
            if value is original:
                patch.setattr(each, alias, boom)


@pytest.mark.parametrize("also", [None, "swallow"])
@pytest.mark.parametrize("inbound", INBOUND)
@pytest.mark.parametrize("through", THROUGH)
@pytest.mark.parametrize(("module", "name"), TARGETS, ids=lambda value: value)
def test_whatever_raises_the_request_goes_through_and_nothing_foreign_with_it(
    monkeypatch: pytest.MonkeyPatch,
    module: str,
    name: str,
    through: str,
    inbound: str,
    also: str | None,
) -> None:
    poll = fresh()
    with monkeypatch.context() as patch:
        break_down(patch, module, name)
        if also:
            break_down(patch, "ldfi.fit.runtime", also)
        seen = THROUGH[through](poll, INBOUND[inbound])
    activate(None)

    entries = [entry for entry in seen.split(",") if "user" not in entry and entry]
    if also is None and not _reads_headers(name) and inbound != "none":
        assert "user=u1" in seen, "what is the host's own stays"
    assert len(entries) <= 1
    for entry in entries:
        assert entry.startswith("fit=1.test."), "only what is signed by us goes on"
    assert "1.k.e" not in seen
    assert "%66" not in seen


def _reads_headers(name: str) -> bool:
    """Where the header itself could not be read or written, all of it is left out."""
    return name.rpartition(".")[2] in {
        "baggage_onward",
        "decide",
        "decided",
        "_screened",
        "values",
        "without",
        "_is_ours",
        "_header",
        "_with_baggage",
        "_admitted",
        "_admit",
        "_variable",
    }


BROKEN_SCOPES: list[dict[str, Any]] = [
    {"type": "http"},
    {"type": "http", "headers": []},
    {"type": "http", "headers": [(b"x-device-id", b"d1")]},
    {"type": "http", "headers": [(b"x-device-id", b"\xff\xfe")], "method": "GET", "path": "/boot"},
    {"type": "http", "headers": [(b"x-device-id", b"d1")], "method": None, "path": None},
    {"type": "websocket", "headers": ((b"baggage", b"fit=x"),)},
    {},
]


@pytest.mark.parametrize("scope", BROKEN_SCOPES, ids=str)
def test_a_strange_scope_reaches_the_application(scope: dict[str, Any]) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope)

    edge: Any = fit.EdgeMiddleware(app, fresh())
    asyncio.run(edge(scope, None, None))
    activate(None)
    assert len(seen) == 1
    assert b"fit=x" not in [value for _, value in seen[0].get("headers", ())]


def test_exceptions_of_the_application_pass_unchanged() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise BoomError

    edge: Any = fit.EdgeMiddleware(app, fresh())
    with pytest.raises(BoomError):
        asyncio.run(edge({"type": "http", "headers": []}, None, None))
    wsgi: Callable[..., Any] = fit.WSGIEdgeMiddleware(boom, fresh())
    with pytest.raises(BoomError):
        wsgi({}, boom)
    activate(None)
