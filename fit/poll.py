"""The edge's line to the control plane: a long poll in a thread of its own.

It never blocks a request and never raises into one. While the line is down it tries again, and
the lease it holds runs out by itself.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
from urllib.parse import quote

from fit.rules import Lease, read_lease

_log = logging.getLogger("fit")

WAIT_SECONDS = 2.0
RETRY_SECONDS = 0.5


class RulesPoll:
    """Holds the current :class:`~fit.rules.Lease`. ``url`` is the service's, ``token`` its key."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._lease = Lease()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def lease(self) -> Lease:
        """The rules in force; the empty lease when the last one has run out."""
        lease = self._lease
        return lease if lease.rules and lease.ends > time.time() else _QUIET

    def start(self) -> None:
        """Start polling; does nothing when it has been started already."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fit-rules", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop polling and drop the lease."""
        self._stopped.set()
        self._lease = Lease()

    def _run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._lease = self._fetch()
            except Exception as error:
                _log.info("no rules from %s: %s", self._url, error)
                self._stopped.wait(RETRY_SECONDS)

    def _fetch(self) -> Lease:
        version = quote(self._lease.version)
        request = urllib.request.Request(  # noqa: S310 - the operator's own URL
            f"{self._url}/api/v1/edge/rules?version={version}&wait={WAIT_SECONDS}",
            headers={"Authorization": f"Bearer {self._token}", "Accept": "application/json"},
        )
        asked_at = time.time()
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS + 5) as response:  # noqa: S310
            return read_lease(json.load(response), asked_at)


_QUIET = Lease()
