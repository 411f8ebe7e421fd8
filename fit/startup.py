"""Switching ``fit`` on in a process: one line, and nothing at all happens without a key.

``opentelemetry-instrument`` finds :func:`from_environment` by its entry point and calls it after
it has instrumented everything else, so that there even the one line is not needed.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from opentelemetry import trace

from ldfi.fit import clients, hosts, patching, reporting, runtime
from ldfi.fit.protocol import keys
from ldfi.fit.protocol.errors import KeyFormatError
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.runtime import Runtime, activate

_log = logging.getLogger("fit")
_AIOHTTP_SERVER = "opentelemetry.instrumentation.aiohttp_server"


def install(service: str | None = None) -> bool:
    """Make this process's calls injection points. Returns whether injection is possible at all.

    ``service`` is this service's name, by default OpenTelemetry's (``OTEL_SERVICE_NAME``,
    ``service.name`` in ``OTEL_RESOURCE_ATTRIBUTES`` or in the tracer provider's resource); it must
    be the name that its spans carry. Keys come from ``FIT_KEYS``. Without a key, or with one that
    cannot be read, nothing is patched and no context is ever obeyed: a service must start all the
    same. Calling it again only changes the name and the keys.
    """
    text = os.environ.get(keys.VARIABLE, "")
    if not text:
        return False
    try:
        trusted = Keys.parse(text)
    except KeyFormatError as error:
        _log.error("fit stays off: %s", error)
        return False
    try:
        activate(Runtime(service or _service_name(), trusted))
        hosts.withhold()
        clients.patch_all()
        patching.when_imported(_AIOHTTP_SERVER, _patch_aiohttp_server)
        clients.watch_for_others()
        reporting.start()
    except Exception:
        _log.exception("fit stays off")
        uninstall()
        return False
    return True


def from_environment() -> None:
    """Install ``fit`` when OpenTelemetry's entry point ``opentelemetry_post_instrument`` calls
    this."""
    install()


def uninstall() -> None:
    """Take everything out again. Clients are what they were, and no context is obeyed."""
    activate(None)
    reporting.stop()
    patching.stop_waiting()
    patching.take_out_all()


def _patch_aiohttp_server() -> None:
    from ldfi.fit import aiohttp_server  # here, for it needs aiohttp

    aiohttp_server.patch()


def _service_name() -> str:
    named = os.environ.get("OTEL_SERVICE_NAME")
    if named:
        return named
    for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","):
        key, _, value = pair.partition("=")
        if key.strip() == "service.name" and value.strip():
            return value.strip()
    return _provided_name() or "unknown_service"


def _provided_name() -> str:
    """Read the name that the process gave its tracer provider in code; the API does not show it."""
    try:
        resource: Any = getattr(trace.get_tracer_provider(), "resource", None)
        return str(resource.attributes.get("service.name", "")) if resource else ""
    except Exception:
        runtime.swallow()
        return ""
