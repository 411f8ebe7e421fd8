"""Points by hand: what is decorated stays what it was, but for the faults."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextvars import copy_context

import pytest
from opentelemetry import trace

from ldfi import fit
from ldfi.fit import runtime
from ldfi.fit.protocol.context import Arm
from ldfi.fit.protocol.errors import InjectedFault
from tests.fit.clients.contract import Requests

POINT = "api>cache:get:home"


@pytest.fixture(autouse=True)
def spans_go_to(
    installed: None, recorded_by: Requests, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setattr(
        trace, "get_tracer", lambda *_, **__: recorded_by.provider.get_tracer("test")
    )
    yield


def finished(requests: Requests) -> set[str]:
    return {span.name for span in requests.exporter.get_finished_spans()}


@fit.point("cache", "get", peer="home")
def plain(item: str) -> str:
    """Look it up."""
    return item


@fit.point("cache", "get", peer="home")
async def coroutine(item: str) -> str:
    return item


@fit.point("cache", "get", peer="home")
def echo(item: str) -> Generator[str, str, str]:
    """Sends back what it is sent, and survives what is thrown into it."""
    sent = item
    while sent:
        try:
            sent = yield sent
        except KeyError as error:
            sent = f"caught {error}"
    return "done"


@fit.point("cache", "get", peer="home")
async def echo_async(item: str) -> AsyncGenerator[str, str]:
    sent = item
    while sent:
        try:
            sent = yield sent
        except KeyError as error:
            sent = f"caught {error}"


def test_what_is_decorated_stays_what_it_was() -> None:
    assert plain.__doc__ == "Look it up."
    assert inspect.iscoroutinefunction(coroutine)
    assert inspect.isgeneratorfunction(echo)
    assert inspect.isasyncgenfunction(echo_async)


def test_a_generator_is_sent_thrown_and_closed_as_before(recorded_by: Requests) -> None:
    with recorded_by.request():
        generator = echo("a")
        assert next(generator) == "a"
        assert generator.send("b") == "b"
        assert generator.throw(KeyError("c")) == "caught 'c'"
        with pytest.raises(StopIteration) as ended:
            generator.send("")
        assert ended.value.value == "done"
        other = echo("x")
        next(other)
        other.close()

    assert recorded_by.lineage().support == {POINT}


def test_an_async_generator_is_sent_thrown_and_closed_as_before(recorded_by: Requests) -> None:
    async def use() -> None:
        generator = echo_async("a")
        assert await anext(generator) == "a"
        assert await generator.asend("b") == "b"
        assert await generator.athrow(KeyError("c")) == "caught 'c'"
        with pytest.raises(StopAsyncIteration):
            await generator.asend("")
        other = echo_async("x")
        await anext(other)
        await other.aclose()

    with recorded_by.request():
        asyncio.run(use())
    assert recorded_by.lineage().support == {POINT}


async def _collect() -> list[str]:
    return [item async for item in echo_async("a")]


CALLS: dict[str, Callable[[], object]] = {
    "function": lambda: plain("a"),
    "coroutine": lambda: asyncio.run(coroutine("a")),
    "generator": lambda: list(echo("a")),
    "asynchronous generator": lambda: asyncio.run(_collect()),
}


@pytest.mark.parametrize("kind", CALLS)
def test_an_error_is_raised_and_the_lineage_knows(recorded_by: Requests, kind: str) -> None:
    with recorded_by.request(f"error@{POINT}"), pytest.raises(InjectedFault, match="home"):
        CALLS[kind]()

    run = recorded_by.lineage()
    assert run.failed == {POINT}
    assert run.fired == {f"error@{POINT}"}


@pytest.mark.parametrize("kind", CALLS)
def test_it_is_called_without_a_context_and_after_a_delay(recorded_by: Requests, kind: str) -> None:
    usual = ["a"] if "generator" in kind else "a"
    assert CALLS[kind]() == usual
    with recorded_by.request(f"delay@{POINT}", delay_ms=20):
        assert CALLS[kind]() == usual
    run = recorded_by.lineage()
    assert run.support == {POINT}
    assert run.fired == {f"delay@{POINT}"}


def test_a_delay_ends_with_its_task(recorded_by: Requests) -> None:
    async def impatient() -> None:
        async with asyncio.timeout(0.05):
            await coroutine("a")

    with recorded_by.request(f"delay@{POINT}", delay_ms=60_000), pytest.raises(TimeoutError):
        asyncio.run(impatient())
    assert recorded_by.lineage().failed == {POINT}


def test_a_generators_span_is_nobodys_parent_while_it_is_suspended(recorded_by: Requests) -> None:
    with recorded_by.request():
        before = trace.get_current_span()
        generator = echo("a")
        next(generator)
        assert trace.get_current_span() is before
        generator.close()


def test_one_point_may_be_in_use_many_times_over(recorded_by: Requests) -> None:
    cache = fit.point("cache", "get", peer="home")
    together = threading.Barrier(4)

    def use() -> None:
        with recorded_by.request(), cache:
            together.wait(10)
            with cache:
                assert trace.get_current_span().is_recording()

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    finished = recorded_by.exporter.get_finished_spans()
    assert sum(span.name == "cache get home" for span in finished) >= 2
    assert not trace.get_current_span().is_recording()


@pytest.mark.parametrize("installed_here", [True, False])
def test_a_block_may_be_left_in_another_context_than_it_was_entered_in(
    recorded_by: Requests, caplog: pytest.LogCaptureFixture, *, installed_here: bool
) -> None:
    """As in a synchronous dependency of FastAPI that yields: one thread in, another one out."""
    if not installed_here:
        runtime.activate(None)
    failure = ValueError("of the host")
    quiet, failing = fit.point("cache", "get", peer="home"), fit.point("cache", "put", peer="home")
    with recorded_by.request():
        for block, raised in ((quiet, None), (failing, failure)):
            copy_context().run(block.__enter__)
            kind = type(raised) if raised else None
            assert copy_context().run(block.__exit__, kind, raised, None) is None
    ended = {s.name: s.status.is_ok for s in recorded_by.exporter.get_finished_spans()}
    expected = {"cache get home": True, "cache put home": False} if installed_here else {}
    assert {name: ok for name, ok in ended.items() if name.startswith("cache")} == expected
    assert not caplog.records


def test_what_was_left_elsewhere_leaves_blocks_around_it_alone(recorded_by: Requests) -> None:
    outer, inner = fit.point("cache", "get", peer="home"), fit.point("cache", "put", peer="home")
    with recorded_by.request():
        with outer:
            inner.__enter__()
            elsewhere = threading.Thread(target=inner.__exit__, args=(None, None, None))
            elsewhere.start()
            elsewhere.join(10)
            assert "cache put home" in finished(recorded_by)
            assert "cache get home" not in finished(recorded_by)
        assert "cache get home" in finished(recorded_by)


def test_an_exception_of_the_host_passes_with_its_own_identity(recorded_by: Requests) -> None:
    mistake = ValueError("of the host")

    @fit.point("cache", "get", peer="home")
    def failing() -> None:
        raise mistake

    with recorded_by.request(), pytest.raises(ValueError, match="of the host") as caught:
        failing()
    assert caught.value is mistake
    assert recorded_by.lineage().failed == {POINT}


class HomeGoneError(Exception):
    """Wants more than words."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text, code)


@fit.point("cache", "get", peer="home", raises=(KeyError, lambda: HomeGoneError("gone", 7)))
def frail(item: str) -> str:
    return item


@fit.point("cache", "get", peer="home", raises=(KeyError,))
async def frail_coroutine(item: str) -> str:
    return item


def test_what_its_author_named_can_be_raised_there(recorded_by: Requests) -> None:
    with recorded_by.request(f"exception:KeyError@{POINT}"), pytest.raises(KeyError) as raised:
        frail("a")
    assert raised.value.args == ("fault injected",)
    assert recorded_by.lineage().fired == {f"exception:KeyError@{POINT}"}
    named = f"exception:HomeGoneError@{POINT}"
    with recorded_by.request(named), pytest.raises(HomeGoneError, match="7"):
        frail("a")
    with recorded_by.request(f"exception:KeyError@{POINT}"), pytest.raises(KeyError):
        asyncio.run(frail_coroutine("a"))


@pytest.mark.parametrize("kind", ["exception:ValueError", "refused", "status:503", "timeout"])
@pytest.mark.parametrize("arm", ["treatment", "control"])
def test_what_nobody_named_is_not_raised_and_not_claimed(
    kind: str, arm: Arm, recorded_by: Requests
) -> None:
    with recorded_by.request(f"{kind}@{POINT}", arm=arm):
        assert frail("a") == "a"
    assert recorded_by.lineage().fired == recorded_by.lineage().would_fire == frozenset()


def test_in_control_it_would_have_been_raised(recorded_by: Requests) -> None:
    with recorded_by.request(f"exception:KeyError@{POINT}", arm="control"):
        assert frail("a") == "a"
    assert recorded_by.lineage().would_fire == {f"exception:KeyError@{POINT}"}
