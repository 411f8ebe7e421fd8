from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator

import pytest
import redis
import redis.asyncio
from opentelemetry.instrumentation.redis import RedisInstrumentor
from redis.backoff import NoBackoff
from redis.retry import Retry

from ldfi.fit.clients import redis as ours
from tests.fit.clients.contract import Requests, holds, seen, seen_async, unharmed
from tests.fit.clients.servers import redis_running

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A real Redis server on loopback."""
    with redis_running(tmp_path_factory.mktemp("redis")) as (number, _):
        yield number


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


async def gets(client: redis.asyncio.Redis) -> object:
    return await client.get("k")


async def sets_and_gets(client: redis.asyncio.Redis) -> object:
    pipeline = client.pipeline()
    pipeline.set("k", 1)
    pipeline.get("k")
    return await pipeline.execute()


@pytest.mark.parametrize(("command", "does"), [("GET", gets), ("SET", sets_and_gets)])
def test_asyncio(
    requests_made: Requests,
    port: int,
    command: str,
    does: Callable[[redis.asyncio.Redis], Awaitable[object]],
) -> None:
    async def call() -> object:
        retries = redis.asyncio.retry.Retry(NoBackoff(), 0)
        async with redis.asyncio.Redis(
            host="127.0.0.1", port=port, socket_timeout=0.2, retry=retries
        ) as client:
            return await does(client)

    point = f"api>db:{command}:127.0.0.1:{port}"
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
