"""``responses``: takes the place of requests' adapters, above urllib3 and its retries."""

from __future__ import annotations

from typing import Any

import responses

from ldfi.fit import patching
from ldfi.fit.clients.fakes import LetThrough, calling
from ldfi.fit.inject import armed


def patch() -> None:
    """Have the real adapter asked first."""
    patching.put(responses.RequestsMock, "_on_request", _asked)


def _asked(original: Any) -> Any:
    def on_request(
        mock: Any, adapter: Any, request: Any, *, retries: Any = None, **options: Any
    ) -> Any:
        if not armed():
            return original(mock, adapter, request, retries=retries, **options)
        try:
            with calling("asked"):
                # No proxy, for it would be connected to; the point has the same name without.
                return mock._real_send(adapter, request, **{**options, "proxies": None})
        except LetThrough:
            pass
        with calling("passed"):
            return original(mock, adapter, request, retries=retries, **options)

    return on_request
