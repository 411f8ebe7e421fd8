"""An ASGI application over a real socket, for as long as a block lasts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from ldfi.testing.errors import needs_service

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise needs_service(__name__, error) from error


START_SECONDS: Final = 120.0
"""How long an application may take until it answers."""


@contextmanager
def served(app: Any, **options: Any) -> Iterator[str]:
    """Serve an ASGI application on loopback in a thread of its own; gives its URL. ``options`` are
    uvicorn's. Raises RuntimeError where it does not start."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", **options))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    deadline = time.monotonic() + START_SECONDS
    while not server.started:
        if not thread.is_alive():
            raise RuntimeError("the application did not start; what it raised is in the log above")
        if time.monotonic() > deadline:
            raise RuntimeError(f"the application has not started within {START_SECONDS:.0f} s")
        time.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(5)
