"""Who is calling? Bearer tokens at the door; what they are is in ``process/tokens.py``.

No route but health answers without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from ldfi.experiments.api import rate_limit
from ldfi.experiments.api.caller_address import address_of
from ldfi.experiments.api.problems import Problem
from ldfi.experiments.api.rate_limit import Rate, RateLimiter
from ldfi.experiments.cluster.tokens import Caller, Role, Tokens

_RATES: Final[Mapping[Role, Rate]] = {
    "viewer": rate_limit.PEOPLE,
    "operator": rate_limit.PEOPLE,
    "admin": rate_limit.PEOPLE,
    "ingest": rate_limit.INGEST,
    "devices": rate_limit.DEVICES,
    "edge": rate_limit.EDGES,
    "metrics": rate_limit.PEOPLE,
}


async def authenticate(request: Request) -> Caller:
    """Find out who is calling, and count them, once per request. Raises Problem 401 or 429."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        caller = await recognise(request, token)
        enter(request, caller)
    return caller


def enter(request: Request, caller: Caller) -> None:
    """Let somebody who was recognised pass, and count the request. Raises Problem 429."""
    address, parts = "", 1
    if caller.role == "devices":  # their token is on every phone
        address, parts = address_of(request), _parts(request)
    _limiter(request).take((caller.id, address), _RATES[caller.role], parts)
    if caller.role == "edge" and (name := request.query_params.get("edge")):
        _limiter(request).take((caller.id, "edge", name), rate_limit.EDGE)
    request.state.caller = caller


async def recognise(request: Request, token: str) -> Caller:
    """Recognise who holds a token. Raises Problem 401 or 429.

    Only attempts that fail are counted, for each address apart: whoever has a token passes, however
    much others try from the same address.
    """
    tokens: Tokens = request.app.state.tokens
    caller = tokens.known(token) if token else None
    if caller is not None:
        return caller
    caller = await run_in_threadpool(tokens.look_up, token) if token else None
    if caller is None:
        _limiter(request).take(("stranger", address_of(request)), rate_limit.STRANGERS)
        raise Problem(401, "unauthorized", "send Authorization: Bearer TOKEN")
    return caller


def _parts(request: Request) -> int:
    """Return how many requests a request counts for, by the length of its body."""
    length = request.headers.get("content-length", "")
    if length.isdecimal():
        return 1 + int(length) // rate_limit.PART
    return rate_limit.UNSAID if "transfer-encoding" in request.headers else 1


def _limiter(request: Request) -> RateLimiter:
    limiter: RateLimiter = request.app.state.rate_limiter
    return limiter


_bearer = HTTPBearer(auto_error=False, description="A token of a role that the route allows.")


@dataclass(frozen=True)
class Needs:
    """A dependency that lets only callers pass whose role includes ``role``."""

    role: Role

    async def admit(self, request: Request) -> Caller:
        """Let a caller in who has the role. Raises Problem 401, 403 or 429."""
        caller = await authenticate(request)
        if not caller.may(self.role):
            raise Problem(
                403, "forbidden", f"this needs the role {self.role}; you are {caller.role}"
            )
        return caller

    async def __call__(
        self,
        request: Request,
        _scheme: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
    ) -> Caller:
        """Let a caller in, as FastAPI calls it."""
        return await self.admit(request)


Viewer = Annotated[Caller, Depends(Needs("viewer"))]
Operator = Annotated[Caller, Depends(Needs("operator"))]
Admin = Annotated[Caller, Depends(Needs("admin"))]
Ingest = Annotated[Caller, Depends(Needs("ingest"))]
Devices = Annotated[Caller, Depends(Needs("devices"))]
Edge = Annotated[Caller, Depends(Needs("edge"))]
Metrics = Annotated[Caller, Depends(Needs("metrics"))]
