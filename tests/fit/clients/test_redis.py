from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest
import redis
import redis.asyncio
from opentelemetry.instrumentation.redis import RedisInstrumentor
from redis.backoff import NoBackoff
from redis.retry import Retry

from ldfi.fit.clients import redis as ours
from tests.fit.clients.contract import Requests, holds, seen, seen_async, unharmed

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """A real Redis server on loopback."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    server = subprocess.Popen(
        [program, "--port", str(number), "--save", "", "--appendonly", "no"],
        stdout=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", number), 1).close()
            break
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)
    yield number
    server.terminate()
    server.wait(10)


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    RedisInstrumentor().instrument(tracer_provider=requests_made.provider)
    yield
    RedisInstrumentor().uninstrument()


@pytest.fixture
def client(port: int) -> Iterator[redis.Redis]:
    retries = Retry(NoBackoff(), 0)
    with redis.Redis(host="127.0.0.1", port=port, socket_timeout=0.2, retry=retries) as client:
        yield client


def unreachable(answer: object) -> bool:
    return isinstance(answer, redis.ConnectionError)


def timed_out(answer: object) -> bool:
    return isinstance(answer, redis.TimeoutError)


def test_commands(requests_made: Requests, client: redis.Redis, port: int) -> None:
    point = f"api>db:GET:127.0.0.1:{port}"
    holds(requests_made, point, seen(lambda: client.get("k")), unreachable, timed_out)


@pytest.mark.parametrize("transaction", [True, False])
def test_pipelines(
    requests_made: Requests, client: redis.Redis, port: int, transaction: bool
) -> None:
    def call() -> object:
        with client.pipeline(transaction=transaction) as pipeline:
            pipeline.set("k", 1)
            pipeline.get("k")
            return pipeline.execute()

    point = f"api>db:SET:127.0.0.1:{port}"
    holds(requests_made, point, seen(call), unreachable, timed_out)


def test_asyncio(requests_made: Requests, port: int) -> None:
    async def call() -> object:
        retries = redis.asyncio.retry.Retry(NoBackoff(), 0)
        async with redis.asyncio.Redis(
            host="127.0.0.1", port=port, socket_timeout=0.2, retry=retries
        ) as client:
            return await client.get("k")

    point = f"api>db:GET:127.0.0.1:{port}"
    holds(requests_made, point, seen_async(call), unreachable, timed_out)


def test_asyncio_pipelines(requests_made: Requests, port: int) -> None:
    async def call() -> object:
        retries = redis.asyncio.retry.Retry(NoBackoff(), 0)
        async with redis.asyncio.Redis(
            host="127.0.0.1", port=port, socket_timeout=0.2, retry=retries
        ) as client:
            pipeline = client.pipeline()
            pipeline.set("k", 1)
            pipeline.get("k")
            return await pipeline.execute()

    point = f"api>db:SET:127.0.0.1:{port}"
    holds(requests_made, point, seen_async(call), unreachable, timed_out)


def test_the_clients_own_retries_save_it(requests_made: Requests, port: int) -> None:
    point = f"api>db:GET:127.0.0.1:{port}"
    retries = Retry(NoBackoff(), 2)
    with redis.Redis(host="127.0.0.1", port=port, retry=retries) as client:
        client.set("saved", "yes")
        with requests_made.request(f"error:2@{point}"):
            assert client.get("saved") == b"yes"
        assert requests_made.lineage().support == {point}
        assert requests_made.lineage().fired == {f"error@{point}"}

        with requests_made.request(f"error:3@{point}"), pytest.raises(redis.ConnectionError):
            client.get("saved")
        assert requests_made.lineage().failed == {point}


def test_the_host_is_unharmed(requests_made: Requests, client: redis.Redis, port: int) -> None:
    point = f"api>db:GET:127.0.0.1:{port}"
    unharmed(requests_made, ours, point, seen(lambda: client.get("k")), unreachable)
