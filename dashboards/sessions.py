"""Who is logged in: a signed cookie that names the token somebody has logged in with.

The cookie holds no token, only its id and a random number, signed with a key derived from
``LDFI_MEMBER_KEY``; without that key everybody has to log in again after a restart. Whether the
token is still good is looked up at every request, so a token revoked ends its sessions at once. A
session lasts :data:`LASTS` seconds. The store remembers which sessions were ended and which links
were used, for longer than they could be good: at every process, and after a restart.

Every form carries :meth:`Session.csrf`, which another site cannot know; and the cookie is
``SameSite=Strict``, so that another site's forms come without it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from fastapi import Request, Response
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool

from ldfi.experiments.api import auth
from ldfi.experiments.api.by_namespace import SESSION, marked
from ldfi.experiments.cluster.tokens import Caller, Tokens
from ldfi.experiments.store import idempotency
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import clock

LASTS: Final = 12 * 3600
LINK_LASTS: Final = 600
"""Seconds for which a link to log in with is good, once."""

COOKIE: Final = SESSION
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-CSRF-Token"


@dataclass(frozen=True, slots=True)
class Session:
    """``who``: id of a token, empty before login. ``number``: random, tells sessions apart.

    ``csrf``: what the forms of this session carry.
    """

    who: str
    number: str
    csrf: str


class Sessions:
    """Makes and reads the cookies of one application. ``key``: its secret; ``database``: where it
    remembers what is over. ``secure``: people
    reach it over TLS, whatever the connection that a proxy hands on says. ``namespace``: whose
    application it is, empty for the default one: no other can read its cookies."""

    def __init__(
        self,
        key: bytes,
        database: Callable[[], Database],
        *,
        secure: bool = False,
        namespace: str = "",
    ) -> None:
        self._database = database
        self.namespace = namespace
        self._secure = secure
        self._key = hmac.digest(key, f"dashboards: {marked(namespace)}sessions".encode(), "sha256")
        self._signer = URLSafeTimedSerializer(
            self._key, salt=COOKIE, signer_kwargs={"digest_method": hashlib.sha256}
        )
        self._links = URLSafeTimedSerializer(
            self._key, salt="link", signer_kwargs={"digest_method": hashlib.sha256}
        )

    def begin(self, response: Response, request: Request, who: str = "") -> Session:
        """Begin a session: a new number, so that nobody can have planted it."""
        number = secrets.token_urlsafe(16)
        response.set_cookie(
            COOKIE,
            marked(self.namespace) + self.signed(who, number),
            max_age=LASTS,
            httponly=True,
            samesite="strict",
            secure=self._secure or request.url.scheme == "https",
        )
        return self._session(who, number)

    def signed(self, who: str, number: str) -> str:
        """Sign what the cookie of a session holds."""
        text: str = self._signer.dumps([who, number])
        return text

    def of(self, request: Request) -> Session | None:
        """Find the session of a request; None where there is none, or it is over, or forged."""
        text = request.cookies.get(COOKIE, "").removeprefix(marked(self.namespace))
        try:
            who, number = self._signer.loads(text, max_age=LASTS)
        except (BadData, ValueError, TypeError):
            return None
        with self._database().read() as looking:
            over = idempotency.is_spent(looking, str(number))
        return None if over else self._session(who, number)

    def end(self, response: Response, session: Session) -> None:
        """End a session for good."""
        self._spend(session.number)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")

    def link(self, who: str) -> str:
        """Sign what lets one browser begin a session of ``who``, once and soon."""
        text: str = self._links.dumps([who, secrets.token_urlsafe(16)])
        return text

    def redeem(self, link: str) -> str | None:
        """Tell whose link this is, and use it up; None where it is used, old or forged."""
        try:
            who, number = self._links.loads(link, max_age=LINK_LASTS)
        except (BadData, ValueError, TypeError):
            return None
        return str(who) if self._spend(number) else None

    def _spend(self, number: str) -> bool:
        with self._database().change(clock.now()) as change:
            return idempotency.spend(change, number)

    def _session(self, who: str, number: str) -> Session:
        csrf = hmac.new(self._key, b"csrf:" + number.encode(), "sha256").hexdigest()
        return Session(who, number, csrf)


def sessions(request: Request) -> Sessions:
    """Return the sessions of this application."""
    found: Sessions = request.app.state.sessions
    return found


async def resume(request: Request) -> Caller | None:
    """Let somebody who is logged in pass, counted like any caller. Raises Problem 429."""
    session = await run_in_threadpool(sessions(request).of, request)
    if session is None:
        return None
    request.state.session = session
    if not session.who:
        return None
    tokens: Tokens = request.app.state.tokens
    caller = await run_in_threadpool(tokens.holder, session.who)
    if caller is not None:
        auth.enter(request, caller)
    return caller
