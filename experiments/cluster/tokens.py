"""Tokens and the roles they carry.

People have ``viewer`` (look), ``operator`` (start, stop, halt, resume) or ``admin`` (all). Machines
have ``ingest`` (send spans and device metrics), ``devices`` (send device metrics only: the token in
an app is on every phone, so it must not be able to forge spans), ``edge`` (fetch rules) or
``metrics`` (read what the service tells Prometheus of itself), and can do nothing else.

Tokens come from the configuration and from the database. What the database said is believed for
:data:`BELIEVED` seconds, so a revoked token dies within that time in every process.
"""

from __future__ import annotations

import copy
import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from ldfi.experiments.store import tokens as stored
from ldfi.experiments.store.database import Database
from ldfi.experiments.telemetry import clock

Role = Literal["viewer", "operator", "admin", "ingest", "devices", "edge", "metrics"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

MIN_TOKEN_LENGTH: Final = 16
BELIEVED: Final = 3.0
"""Seconds for which a token found in the database is taken to be still there."""
_MAX_BELIEVED: Final = 10_000
_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_INCLUDES: Final[Mapping[Role, frozenset[Role]]] = {
    "viewer": frozenset({"viewer", "metrics"}),
    "operator": frozenset({"viewer", "operator", "metrics"}),
    "admin": frozenset(ROLES),
    "ingest": frozenset({"ingest", "devices"}),
    "devices": frozenset({"devices"}),
    "edge": frozenset({"edge"}),
    "metrics": frozenset({"metrics"}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling: ``name`` is how the audit names them, ``id`` tells tokens apart."""

    id: str
    name: str
    role: Role

    def may(self, role: Role) -> bool:
        """Return whether this caller's role includes ``role``."""
        return role in _INCLUDES[self.role]


@dataclass(frozen=True, slots=True)
class _Belief:
    caller: Caller
    until: float


class Tokens:
    """The tokens that are accepted: those given as text and, once set, those of ``database``.

    The text is ``ROLE:TOKEN,NAME@ROLE:TOKEN,…``; without a name the audit shows the role.
    """

    def __init__(
        self,
        text: str,
        database: Database | None = None,
        clock: Callable[[], float] = clock.now,
    ) -> None:
        """Read ``text``. Raises ValueError; the message shows no token."""
        self.database = database
        self._clock = clock
        self._given = dict(
            _given(position, pair)
            for position, pair in enumerate(filter(None, map(str.strip, text.split(","))), start=1)
        )
        self._believed: dict[str, _Belief] = {}
        self._global_tokens: Tokens | None = None

    def within(self, database: Database) -> Tokens:
        """Return the tokens of another namespace, whose store this is. The admins of these here
        are admins there too; nobody else is anybody."""
        mine = Tokens("", database, self._clock)
        mine._global_tokens = self
        return mine

    def beside(self, database: Database) -> Tokens:
        """Return the same tokens, asked of ``database``, with beliefs of their own."""
        mine = copy.copy(self)
        mine.database, mine._believed = database, {}
        return mine

    def known(self, token: str) -> Caller | None:
        """Find who holds this token, as far as memory tells; compared in constant time."""
        digest = stored.digest(token)
        found = [who for given, who in self._given.items() if hmac.compare_digest(given, digest)]
        if found:
            return found[0]
        belief = self._believed.get(digest)
        if belief is not None and self._clock() < belief.until:
            return belief.caller
        return None if self._global_tokens is None else _admin(self._global_tokens.known(token))

    def unnamed(self, role: Role) -> Caller | None:
        """Find who holds a given token of just this role, if it has no name of a person."""
        found = (who for who in self._given.values() if who.role == role == who.name)
        return next(found, None)

    def holder(self, caller_id: str) -> Caller | None:
        """Find who a token of this id belongs to, as the database knows now; None when it is
        gone."""
        given = next((who for who in self._given.values() if who.id == caller_id), None)
        if given is not None or self.database is None:
            return given
        with self.database.read() as session:
            entry = stored.by_id(session, caller_id, self._clock())
        if entry is None and self._global_tokens is not None:
            return _admin(self._global_tokens.holder(caller_id))
        if entry is None or entry.role not in ROLES:
            return None
        return Caller(entry.id, entry.name, entry.role)

    def look_up(self, token: str) -> Caller | None:
        """Find who holds this token, as the database knows now. It is found by its digest."""
        if self.database is None:
            return None
        now, digest = self._clock(), stored.digest(token)
        with self.database.read() as session:
            entry = stored.holder(session, digest, now)
        if entry is None or entry.role not in ROLES:
            self._believed.pop(digest, None)
            return (
                None if self._global_tokens is None else _admin(self._global_tokens.look_up(token))
            )
        caller = Caller(entry.id, entry.name, entry.role)
        if len(self._believed) >= _MAX_BELIEVED:
            self._believed.clear()
        until = min(now + BELIEVED, entry.expires_at or now + BELIEVED)
        self._believed[digest] = _Belief(caller, until)
        return caller


def _admin(caller: Caller | None) -> Caller | None:
    return caller if caller is not None and caller.role == "admin" else None


def _given(position: int, pair: str) -> tuple[str, Caller]:
    who, _, token = pair.partition(":")
    name, _, last = who.rpartition("@")
    role = next((role for role in ROLES if role == last), None)
    named = "@" not in who or _NAME.fullmatch(name)
    if role is None or not named or len(token) < MIN_TOKEN_LENGTH:
        raise ValueError(
            f"token number {position} is not ROLE:TOKEN or NAME@ROLE:TOKEN with a role of "
            f"{list(ROLES)}, a name of letters, digits and ._-, and a token of at least "
            f"{MIN_TOKEN_LENGTH} characters"
        )
    digest = stored.digest(token)
    return digest, Caller(f"given-{digest[:16]}", name or role, role)
