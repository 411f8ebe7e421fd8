"""``aioresponses``: takes the place of aiohttp's sessions."""

from __future__ import annotations

from typing import Any

import aiohttp
from aioresponses import aioresponses

from ldfi.fit import patching
from ldfi.fit.clients.fakes import session


def patch() -> None:
    """Have the real session asked first."""
    session.patch()
    patching.put(aioresponses, "start", _started)


def _started(original: Any) -> Any:
    def start(fake: Any) -> None:
        original(fake)
        replaced: Any = aiohttp.ClientSession._request
        real = fake.patcher.temp_original
        replaced.side_effect = session.through_session(real, fake._request_mock)

    return start
