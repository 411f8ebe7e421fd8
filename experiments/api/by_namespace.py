"""Which namespace is a request about? Each has an application of its own, and there it goes.

What is looked at here proves nothing: the application that it goes to knows the tokens and the
sessions of its own namespace, and no others but those of admins of the default one. In this order:

1. the header ``Ldfi-Namespace``, for those admins; one that there is not knows nobody;
2. the token, which says whose it is;
3. on the way to the login page, ``?namespace=``;
4. the session of a browser.
"""

from __future__ import annotations

from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Receive, Scope, Send

from ldfi.experiments.api.problems import Problem, answer_of
from ldfi.experiments.cluster.relay import NAMESPACE
from ldfi.experiments.store.namespaces import DEFAULT
from ldfi.experiments.store.tokens import namespace_in

SESSION: Final = "ldfi_session"
"""The cookie of a session of the pages. That of another namespace begins with its name."""

MARK: Final = "~"
"""What stands after the name there."""

LOGIN: Final = "/login"
PARAMETER: Final = "namespace"


class ByNamespace:
    """``find`` finds the application of a namespace; ``app`` is the default one's."""

    def __init__(self, app: ASGIApp, find: Callable[[str], ASGIApp | None]) -> None:
        self._app = app
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on to the application that it is for."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        asked = headers.get(NAMESPACE.encode(), b"").decode("latin-1")
        if asked and asked != DEFAULT:
            app = self._find(asked)
            if app is None:
                unknown = Problem(401, "unauthorized", "send Authorization: Bearer TOKEN")
                await answer_of(unknown)(scope, receive, send)
                return
        else:
            said = "" if asked else _said(scope, headers)
            app = self._find(said) if said else None
            if app is not None:
                scope = _without_parameter(scope)
        await (app or self._app)(scope, receive, send)


def marked(namespace: str) -> str:
    """Write what the cookie of a session of this namespace begins with."""
    return f"{namespace}{MARK}" if namespace else ""


def _said(scope: Scope, headers: dict[bytes, bytes]) -> str:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    if token:
        return (namespace_in(token.strip()) or "") if scheme.lower() == "bearer" else ""
    if scope["path"] == LOGIN and (named := dict(_parameters(scope)).get(PARAMETER)):
        return named
    return _of_session(headers.get(b"cookie", b"").decode("latin-1"))


def _of_session(cookies: str) -> str:
    if SESSION not in cookies or MARK not in cookies:
        return ""
    try:
        found = SimpleCookie(cookies).get(SESSION)
    except CookieError:
        return ""
    name, mark, _ = (found.value if found is not None else "").partition(MARK)
    return name if mark else ""


def _without_parameter(scope: Scope) -> Scope:
    """Take out what only this module knows of: no route would let it pass."""
    if scope["path"] != LOGIN or PARAMETER.encode() not in scope["query_string"]:
        return scope
    left = [(name, value) for name, value in _parameters(scope) if name != PARAMETER]
    return {**scope, "query_string": urlencode(left).encode()}


def _parameters(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
