"""An edge under test: a front that a host has set up, and the control plane that it asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection
from urllib.parse import urlsplit

from ldfi.fit import baggage
from ldfi.fit.device import DEVICE_HEADER
from ldfi.fit.protocol.context import FailureContext, decode
from ldfi.fit.protocol.keys import Keys
from ldfi.testing.control_plane import ControlPlane

SOON = 8.0
"""Seconds within which whatever has to happen by itself does, on a machine with much to do."""


@dataclass(frozen=True, slots=True)
class Front:
    """Where an edge listens; it answers with the ``baggage`` that each request goes on with."""

    url: str
    keys: Keys

    def onward(
        self, device: str, path: str = "/titles/17", *baggages: str, cookies: Sequence[str] = ()
    ) -> str:
        """Send a request with these ``baggage`` and ``cookie`` headers, and read the baggage that
        it goes on with."""
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.putrequest("GET", path)
            if device:
                connection.putheader(DEVICE_HEADER, device.encode("latin-1"))
            for each in baggages:
                connection.putheader("baggage", each.encode("latin-1"))
            for each in cookies:
                connection.putheader("cookie", each.encode("latin-1"))
            connection.endheaders()
            return connection.getresponse().read().decode("latin-1")
        finally:
            connection.close()

    def ask(self, device: str, path: str = "/titles/17", *baggages: str) -> FailureContext | None:
        """Send a request, and read the context that it goes on with; None without one. Raises
        ContextError for one that nobody would obey."""
        return self.read(self.onward(device, path, *baggages))

    def read(self, header: str) -> FailureContext | None:
        """Read the context in a ``baggage`` header, as :meth:`ask` does."""
        value = baggage.find(header)
        return None if value is None else decode(self.keys, value, time.time())

    def hold(self, plane: ControlPlane) -> None:
        """Wait until the edge holds the rules in force; it begins to ask with a request."""
        self.onward("")
        plane.until_held()


def eventually(holds: Callable[[], object], seconds: float = SOON) -> bool:
    """Return whether something comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
