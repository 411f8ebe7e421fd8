"""Bearer tokens and the roles they carry. No route but health answers without one.

People have ``viewer`` (look), ``operator`` (start, stop, halt, resume) or ``admin`` (all); machines
have ``ingest`` (send spans and device metrics) or ``edge`` (fetch rules), and can do nothing else.
Tokens are kept as SHA-256 digests; they are random and long, so a slow hash would add nothing.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, Literal, get_args

from fastapi import Depends, Request

from experiments.api.problems import Problem

Role = Literal["viewer", "operator", "admin", "ingest", "edge"]

MIN_TOKEN_LENGTH: Final = 16
_INCLUDES: Final[Mapping[Role, frozenset[Role]]] = {
    "viewer": frozenset({"viewer"}),
    "operator": frozenset({"viewer", "operator"}),
    "admin": frozenset(get_args(Role)),
    "ingest": frozenset({"ingest"}),
    "edge": frozenset({"edge"}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, as the audit names them."""

    role: Role

    @property
    def name(self) -> str:
        """The role; tokens with names of people come with accounts."""
        return self.role


class Tokens:
    """The tokens that are accepted: digest → role."""

    def __init__(self, text: str) -> None:
        """Read ``role:token,role:token``. Raises ValueError; the message shows no token."""
        self._roles: dict[bytes, Role] = {}
        for position, pair in enumerate(filter(None, map(str.strip, text.split(","))), start=1):
            role, _, token = pair.partition(":")
            known: Role | None = next((r for r in _INCLUDES if r == role), None)
            if known is None or len(token) < MIN_TOKEN_LENGTH:
                raise ValueError(
                    f"token number {position} is not ROLE:TOKEN with a role of {list(_INCLUDES)} "
                    f"and a token of at least {MIN_TOKEN_LENGTH} characters"
                )
            self._roles[_digest(token)] = known

    def caller(self, token: str) -> Caller | None:
        """Who holds this token; every known digest is compared, in constant time."""
        digest = _digest(token)
        found = [role for known, role in self._roles.items() if hmac.compare_digest(known, digest)]
        return Caller(found[0]) if found else None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def needs(role: Role) -> Callable[[Request], Caller]:
    """A dependency that lets only callers pass whose role includes ``role``."""

    def check(request: Request) -> Caller:
        tokens: Tokens = request.app.state.tokens
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        caller = tokens.caller(token.strip()) if scheme.lower() == "bearer" else None
        if caller is None:
            raise Problem(401, "unauthorized", "send Authorization: Bearer TOKEN")
        if role not in _INCLUDES[caller.role]:
            raise Problem(403, "forbidden", f"this needs the role {role}; you are {caller.role}")
        return caller

    return check


Viewer = Annotated[Caller, Depends(needs("viewer"))]
Operator = Annotated[Caller, Depends(needs("operator"))]
Ingest = Annotated[Caller, Depends(needs("ingest"))]
Edge = Annotated[Caller, Depends(needs("edge"))]
