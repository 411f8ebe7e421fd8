"""Switching ``fit`` on in a process: one line, and nothing at all happens without a key."""

from __future__ import annotations

import logging
import os

from fit import keys
from fit.errors import KeyFormatError
from fit.http import patch_httpcore
from fit.keys import Keys
from fit.runtime import Runtime, activate

_log = logging.getLogger("fit")


def install(service: str | None = None) -> bool:
    """Make this process's calls injection points. Returns whether injection is possible at all.

    ``service`` is this service's name, by default ``OTEL_SERVICE_NAME``; it must be the name that
    its spans carry. Keys come from ``FIT_KEYS``. Without a key, or with one that cannot be read,
    nothing is patched and no context is ever obeyed: a service must start all the same.
    """
    text = os.environ.get(keys.VARIABLE, "")
    if not text:
        return False
    try:
        trusted = Keys.parse(text)
    except KeyFormatError as error:
        _log.error("fit stays off: %s", error)
        return False
    name = service or os.environ.get("OTEL_SERVICE_NAME") or "unknown_service"
    activate(Runtime(name, trusted))
    patch_httpcore()
    return True
