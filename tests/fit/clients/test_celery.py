"""Celery over Redis: a message that cannot be published, and a result that does not come, are what
they are when the broker, the backend or the worker is gone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import kombu.exceptions
import pytest
import redis
from celery import Celery
from celery.exceptions import TimeoutError as Late
from kombu import pools
from kombu.connection import Connection
from kombu.messaging import Producer
from opentelemetry import trace
from opentelemetry.instrumentation.celery import CeleryInstrumentor

from ldfi.fit.clients import celery as our_celery
from ldfi.fit.clients import kombu as our_kombu
from tests.fit.clients.callers import look
from tests.fit.clients.contract import Requests, holds, seen, unharmed
from tests.fit.clients.dying import nobody
from tests.fit.clients.seen_of_kinds import BY_THEMSELVES
from tests.fit.clients.servers import redis_running

pytestmark = [
    pytest.mark.servers,
    # sockets that kombu and Celery forget once their server is gone
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SENT: Final = "api>message:send:/celery"
RESULT: Final = "api>message:receive:celery/results"
PATIENCE: Final = 0.3


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with redis_running(tmp_path_factory.mktemp("celery")) as (number, _):
        yield number


@pytest.fixture(autouse=True)
def instrumented(requests_made: Requests) -> Iterator[None]:
    instrumentor: Any = CeleryInstrumentor()  # type: ignore[no-untyped-call]
    instrumentor.instrument(tracer_provider=requests_made.provider)
    yield
    instrumentor.uninstrument()


@contextmanager
def application(broker: int, backend: int | None = None) -> Iterator[Any]:
    """Celery with one task, ``add``."""
    at = {"broker": f"redis://127.0.0.1:{broker}/0"}
    if backend is not None:
        at["backend"] = f"redis://127.0.0.1:{backend}/1"
    with Celery("shop", set_as_current=False, **at) as made:

        @made.task(name="add")  # type: ignore[untyped-decorator]
        def add() -> int:
            return 3

        yield add
        pools.reset()  # type: ignore[no-untyped-call]


class Attempts:
    """What kombu tells of each attempt that failed, and how long it waits."""

    def __init__(self) -> None:
        self.told: list[tuple[str, float]] = []

    def __call__(self, failure: BaseException, interval: float) -> None:
        self.told.append((type(failure).__name__, interval))

    def publish(self, add: Any, **policy: Any) -> Callable[[], Any]:
        def call() -> Any:
            retries = {"max_retries": 2, "interval_step": 0.01, "errback": self, **policy}
            return add.apply_async(retry_policy=retries)

        return call


def refused(answer: object) -> bool:
    return isinstance(answer, kombu.exceptions.OperationalError)


def test_one_name_at_both_ends(requests_made: Requests, port: int) -> None:
    with application(port) as add:
        call = seen(lambda: add.apply_async(retry=False))
        holds(requests_made, SENT, call, refused)
        for ours in (our_celery, our_kombu):
            unharmed(requests_made, ours, SENT, call, refused)


Calls = Callable[[Any], Any]


def publishing(attempts: Attempts) -> Calls:
    return lambda add: attempts.publish(add)()


@contextmanager
def killed(folder: Path, connect: Callable[[Any], Any]) -> Iterator[Any]:
    """An application whose Redis is killed once it has connected."""
    with redis_running(folder) as (number, server), application(number, number) as add:
        connect(add)
        server.kill()
        server.wait(10)
        add.app.backend.remove_pending_result = lambda _: (
            None
        )  # tries for 20 seconds as it is freed
        yield add


def connected(add: Any) -> None:
    add.apply_async(ignore_result=True)
    add.AsyncResult("lost").state  # noqa: B018
    add.app.backend.result_consumer.start("lost")


def get(patience: float) -> Calls:
    return lambda add: add.AsyncResult("lost").get(timeout=patience)


MATRIX: Final = [
    (client, kind)
    for client in ("Celery, publish", "Celery, result")
    for kind in BY_THEMSELVES[client]
]


@pytest.mark.parametrize(("client", "kind"), MATRIX)
def test_a_caller_sees_what_it_really_sees(
    requests_made: Requests, own_spans: None, port: int, tmp_path: Path, client: str, kind: str
) -> None:
    told = Attempts(), Attempts()
    if client == "Celery, publish":
        point, calls = SENT, [publishing(each) for each in told]
    else:
        point, calls = RESULT, [get(PATIENCE if kind == "timeout" else 20)] * 2
    if kind == "error":
        with killed(tmp_path, connected) as add:
            real = look(lambda: calls[0](add))
    else:
        with application(port, port) as add:
            real = look(lambda: calls[0](add))
    with application(port, port) as add:
        connected(add)
        with requests_made.request(f"{kind}@{point}", delay_ms=5_000):
            injected = look(lambda: calls[1](add))

    assert injected.head == real.head
    assert injected.words[:1] == real.words[:1]
    assert injected.head.rpartition(".")[2] == BY_THEMSELVES[client][kind]
    assert told[0].told == told[1].told
    assert requests_made.lineage().fired == {f"{kind}@{point}"}


def test_a_process_that_never_reached_a_broker_retries(requests_made: Requests, port: int) -> None:
    told = Attempts(), Attempts()
    with nobody() as dead, application(dead) as add:
        real = look(told[0].publish(add))
    with application(port) as add, requests_made.request(f"error@{SENT}"):
        injected = look(told[1].publish(add))
    assert injected.head == real.head == "kombu.exceptions.OperationalError"
    assert injected.words[:1] == real.words[:1]
    assert told[0].told == told[1].told


def test_retries_save_a_message_when_the_broker_is_back(requests_made: Requests, port: int) -> None:
    attempts = Attempts()
    with application(port) as add:
        with requests_made.request(f"error:2@{SENT}"):
            attempts.publish(add, max_retries=3)()
        assert len(attempts.told) == 2
        assert requests_made.lineage().fired == {f"error@{SENT}"}
        assert SENT in requests_made.lineage().support
        with requests_made.request(f"error@{SENT}"), pytest.raises(kombu.exceptions.KombuError):
            attempts.publish(add)()
        assert requests_made.lineage().failed == {SENT}


@pytest.mark.parametrize("armed", [True, False])
def test_the_span_of_a_failed_message_is_exported(requests_made: Requests, armed: bool) -> None:
    """OpenTelemetry's instrumentation ends it only once the message is published."""
    with nobody() as dead, application(dead) as add:
        around = requests_made.request(*(["error@api>http:GET:elsewhere/"] if armed else []))
        with (
            around,
            requests_made.provider.get_tracer("test").start_as_current_span("work") as work,
        ):
            with pytest.raises(kombu.exceptions.OperationalError):
                Attempts().publish(add)()
            assert trace.get_current_span() is work
    [sent] = requests_made.calls()
    assert sent.kind is trace.SpanKind.PRODUCER
    assert sent.status.status_code is trace.StatusCode.ERROR
    assert requests_made.lineage().failed == {SENT}


def test_a_task_sent_by_its_name_has_a_span_as_well(requests_made: Requests, port: int) -> None:
    """The instrumentation never ends the span of a task that this process does not know."""
    with application(port) as add:
        with requests_made.request():
            add.app.send_task("elsewhere.work")
        assert requests_made.lineage().support == {SENT}


def test_kombu_alone_has_the_same_point(
    requests_made: Requests, own_spans: None, port: int
) -> None:
    with (
        Connection(f"redis://127.0.0.1:{port}/0") as connection,  # type: ignore[no-untyped-call]
        Producer(connection) as producer,  # type: ignore[no-untyped-call]
        requests_made.request(f"error@{SENT}"),
        pytest.raises(kombu.exceptions.OperationalError),
    ):
        policy = {"max_retries": 1, "interval_start": 0, "interval_step": 0}
        producer.publish({}, routing_key="celery", retry=True, retry_policy=policy)


def test_a_context_goes_with_a_message_to_a_private_broker_only(
    requests_made: Requests, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ldfi.fit import hosts

    with application(port) as add, redis.Redis(port=port) as queue:
        for allowed, sent in (("127.0.0.1,!*", True), ("", False)):
            monkeypatch.setenv(hosts.VARIABLE, allowed)
            hosts.forget()
            queue.delete("celery")
            with requests_made.request("error@api>http:GET:elsewhere/"):
                add.apply_async()
            [message] = queue.lrange("celery", 0, -1)
            assert b"traceparent" in message
            assert (b"fit=" in message) is sent
    hosts.forget()


def test_a_result_that_is_waited_for(requests_made: Requests, own_spans: None, port: int) -> None:
    """No span of OpenTelemetry's is the waiting: it is seen where a fault hits it."""
    with application(port, port) as add:
        add.backend.store_result("there", 3, "SUCCESS")
        for arm, fired in (("treatment", "fired"), ("control", "would_fire")):
            with requests_made.request(f"timeout@{RESULT}", arm=arm, delay_ms=5_000):  # type: ignore[arg-type]
                began = time.monotonic()
                answer = seen(lambda: add.AsyncResult("there").get(timeout=PATIENCE))()
            assert isinstance(answer, Late) if arm == "treatment" else answer == 3
            assert (time.monotonic() - began >= PATIENCE) is (arm == "treatment")
            assert getattr(requests_made.lineage(), fired) == {f"timeout@{RESULT}"}
        with requests_made.request(f"error@{RESULT}"), pytest.raises(redis.ConnectionError):
            add.AsyncResult("there").get(timeout=PATIENCE)
        unharmed(
            requests_made,
            our_celery,
            RESULT,
            seen(lambda: add.AsyncResult("there").get(timeout=PATIENCE)),
            lambda answer: isinstance(answer, redis.ConnectionError | Late),
        )
