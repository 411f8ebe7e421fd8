"""A server that stands still for a while: HTTP/1.1 on a socket, as little as it takes."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 11\r\n\r\n"


@contextmanager
def pausing(after: float, seconds: float) -> Iterator[str]:
    """Serve on loopback; ``after`` seconds from the first request on, nothing is done for so many
    ``seconds``: the whole process stands still, as in a stop-the-world collection."""
    ready: list[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = []
    started = threading.Event()

    async def serve() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        begun: list[float] = []

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                while True:
                    await reader.readuntil(b"\r\n\r\n")
                    if not begun:
                        begun.append(loop.time())
                        loop.call_later(after, time.sleep, seconds)
                    writer.write(ANSWER + b'{"rows": 3}')
            except (asyncio.IncompleteReadError, ConnectionError):
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ready.append((loop, stop, server.sockets[0].getsockname()[1]))
        started.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert started.wait(10)
    loop, stop, port = ready[0]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
