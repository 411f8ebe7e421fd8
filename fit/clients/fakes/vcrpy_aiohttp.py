"""vcrpy, where it takes the place of aiohttp's sessions."""

from __future__ import annotations

from typing import Any

from vcr.stubs import aiohttp_stubs

from ldfi.fit import patching
from ldfi.fit.clients.fakes import session


def patch() -> None:
    """Have the real session asked first."""
    session.patch()
    patching.put(aiohttp_stubs, "vcr_request", _made)


def _made(original: Any) -> Any:
    def vcr_request(cassette: Any, real_request: Any) -> Any:
        return session.through_session(real_request, original(cassette, real_request))

    return vcr_request
