"""A real Redis that loads, that is a read-only replica, that is gone: and the same under faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
import redis
import redis.asyncio
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.fit.clients.callers import CALLERS, Sight, look
from tests.fit.clients.contract import Requests
from tests.fit.clients.dying import nobody
from tests.fit.clients.servers import redis_running
from tests.fit.clients.test_kinds import alike

pytestmark = [
    pytest.mark.servers,
    pytest.mark.usefixtures("own_spans"),
]

CLIENTS: Final = ("redis-py", "redis-py, asyncio")
DEBUG: Final = ("--enable-debug-command", "yes")


@contextmanager
def loading(folder: Path) -> Iterator[int]:
    """A server with keys that it takes its time to load."""
    with redis_running(folder, *DEBUG) as (port, _), redis.Redis("127.0.0.1", port) as client:
        client.execute_command("DEBUG", "POPULATE", 20_000)
        client.save()
    slow = ("--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024")
    with redis_running(folder, *DEBUG, *slow) as (port, _):
        yield port


@contextmanager
def replica(folder: Path) -> Iterator[int]:
    """A replica, of a server that is nowhere."""
    with nobody() as other, redis_running(folder, "--replicaof", f"127.0.0.1 {other}") as (port, _):
        yield port


STATES: Final = {"redis:loading": loading, "redis:readonly": replica}


def under(requests: Requests, kind: str, port: int, call: Callable[[], Any]) -> Sight:
    point = f"api>db:SET:127.0.0.1:{port}"
    with requests.request(f"{kind}@{point}", delay_ms=1_000):
        seen = look(call)
    (hit,) = [each for each in requests.calls() if "fit.fired" in (each.attributes or {})]
    assert (hit.attributes or {})["fit.fired"] == kind
    return seen


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", STATES)
def test_a_server_in_this_state(
    requests_made: Requests, tmp_path: Path, client: str, kind: str
) -> None:
    caller = CALLERS[client]
    with STATES[kind](tmp_path) as port:
        real = look(lambda: caller.call(port, 20.0))
    (tmp_path / "dump.rdb").unlink(missing_ok=True)
    with redis_running(tmp_path, *DEBUG) as (port, _):
        injected = under(requests_made, kind, port, lambda: caller.call(port, 20.0))

    assert alike(injected, real), (injected, real)


def twice(client: str, port: int, between: Callable[[], object]) -> Callable[[], Any]:
    """Two commands over one connection, and what happens between them."""

    def blocking() -> Any:
        with redis.Redis("127.0.0.1", port, retry=Retry(NoBackoff(), 0)) as used:
            used.get("k")
            between()
            return used.set("k", "v")

    async def within() -> Any:
        retry = AsyncRetry(NoBackoff(), 0)
        async with redis.asyncio.Redis(host="127.0.0.1", port=port, retry=retry) as used:
            await used.get("k")
            between()
            return await used.set("k", "v")

    return blocking if client == "redis-py" else lambda: asyncio.run(within())


@pytest.mark.parametrize(
    ("client", "kind"), [("redis-py", "refused"), ("redis-py, asyncio", "redis:lost")]
)
def test_a_server_that_is_gone(
    requests_made: Requests, tmp_path: Path, client: str, kind: str
) -> None:
    """It closes the connections that there are, and nothing listens any more.

    In threads redis-py tries to connect anew at once, and tells of that.
    """
    caller = CALLERS[client]
    with redis_running(tmp_path, *DEBUG) as (port, server):

        def kill() -> None:
            server.kill()
            server.wait(10)

        lost = look(twice(client, port, kill))
        refused = look(lambda: caller.call(port, 20.0))
    with redis_running(tmp_path, *DEBUG) as (port, _):
        seen = under(requests_made, kind, port, twice(client, port, lambda: None))
        assert alike(seen, lost), (seen, lost)
        seen = under(requests_made, "refused", port, lambda: caller.call(port, 20.0))
        assert alike(seen, refused), (seen, refused)
