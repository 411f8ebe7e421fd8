"""Code under faults: what fires, what is told, and that nothing stays behind."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import TracerProvider
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from ldfi import fit
from ldfi.fit import runtime, uninstall
from ldfi.fit.clients import patch_all
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.runtime import Runtime, activate
from ldfi.testing import NotFired, faults
from ldfi.testing.live_service import served
from tests.fit.applications import KEYS, echo_app

RATINGS = "shop>http:GET:ratings/titles/*"
BESTSELLERS = "shop>http:GET:ratings/bestsellers"


def answer(request: httpx.Request) -> httpx.Response:
    return httpx.Response(200, json={"stars": 4})


def stars(path: str = "/titles/17") -> int | None:
    """A call with a fallback, over a fake."""
    with httpx.Client(transport=httpx.MockTransport(answer), timeout=0.05) as client:
        try:
            response = client.get(f"http://ratings{path}").raise_for_status()
            return int(response.json()["stars"])
        except httpx.HTTPError:
            return None


async def stars_async() -> int | None:
    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, timeout=0.05) as client:
        try:
            response = (await client.get("http://ratings/titles/17")).raise_for_status()
            return int(response.json()["stars"])
        except httpx.HTTPError:
            return None


@fit.point("function", "rank")
def rank() -> int:
    return 1


@pytest.fixture(autouse=True)
def nothing_stays_behind() -> Iterator[None]:
    sends = vars(httpx.Client)["_send_single_request"]
    yield
    assert runtime.active() is None
    assert baggage.get_baggage("fit") is None
    assert vars(httpx.Client)["_send_single_request"] is sends
    assert stars() == 4


@pytest.mark.parametrize("kind", ["error", "delay"])
def test_a_call_fails_in_the_block_and_nowhere_else(kind: str) -> None:
    assert stars() == 4
    with faults(f"{kind}@{RATINGS}") as injected:
        assert stars() is None
    assert stars() == 4
    assert injected.fired == [f"{kind}@{RATINGS}"]
    assert injected.passed == [RATINGS]


def test_a_length_that_is_drawn_is_drawn_again_the_same_and_has_fired() -> None:
    carried = []
    for _ in range(2):
        with faults(f"delay:0.001..0.02@{RATINGS}") as injected:
            carried.append(injected.headers["baggage"].split(".")[5])
            assert stars() == 4
        assert injected.fired == [f"delay@{RATINGS}"]
    assert carried[0] == carried[1]


def test_a_body_that_comes_slowly_is_waited_for_and_has_fired() -> None:
    with faults(f"slow:0.2@{RATINGS}") as injected:
        began = time.monotonic()
        assert stars() == 4, "each piece came within the timeout"
        assert time.monotonic() - began >= 0.2
    assert injected.fired == [f"slow@{RATINGS}"]


def test_coroutines_and_threads_that_get_the_context_are_reached() -> None:
    with faults(f"error@{RATINGS}") as injected:
        assert asyncio.run(stars_async()) is None
        assert asyncio.run(asyncio.to_thread(stars)) is None
    assert len(injected.fired) == 2


def test_a_decorated_function_needs_no_tracing_either() -> None:
    with faults("error@shop>function:rank"), pytest.raises(fit_error()):
        rank()
    assert rank() == 1


def fit_error() -> type[Exception]:
    from ldfi.fit.protocol.errors import InjectedFault

    return InjectedFault


def test_a_fault_that_never_fires_fails_the_test_and_says_what_was_reached() -> None:
    with pytest.raises(NotFired) as raised, faults(f"error@{RATINGS}", f"delay@{BESTSELLERS}"):
        stars()
        rank()
    assert raised.value.missing == [f"delay@{BESTSELLERS}"]
    assert raised.value.passed == [RATINGS, "shop>function:rank"]
    assert f"never fired: delay@{BESTSELLERS}. " in str(raised.value)
    assert RATINGS in str(raised.value)
    assert isinstance(raised.value, AssertionError)  # so that pytest calls it a failure


def test_calls_that_the_context_does_not_reach_are_not_taken_for_tried() -> None:
    with (
        pytest.raises(NotFired, match="No injection point was reached"),
        faults(f"error@{RATINGS}"),
        ThreadPoolExecutor(1) as pool,
    ):
        assert pool.submit(stars).result() == 4


def test_who_asks_may_leave_faults_unfired() -> None:
    with faults(f"error@{RATINGS}", must_fire=False) as injected:
        pass
    assert injected.missing() == [f"error@{RATINGS}"]


def test_what_the_block_raises_comes_first_and_names_what_did_not_fire() -> None:
    with pytest.raises(KeyError) as raised, faults(f"error@{RATINGS}"):
        raise KeyError("of the test")
    assert f"never fired: error@{RATINGS}" in raised.value.__notes__[0]

    with pytest.raises(KeyError) as raised, faults(f"error@{RATINGS}"):
        stars()
        raise KeyError("of the test")
    assert not hasattr(raised.value, "__notes__")


@pytest.mark.parametrize("times", [1, 2])
def test_the_first_calls_are_counted_anew_in_every_block(times: int) -> None:
    for _ in range(2):
        with faults(f"error:{times}@{RATINGS}") as injected:
            assert [stars() for _ in range(3)] == [None] * times + [4] * (3 - times)
        assert injected.fired == [f"error@{RATINGS}"] * times
        assert injected.passed == [RATINGS] * 3


def test_a_block_within_another_is_under_its_own_faults_only() -> None:
    with faults(f"error@{RATINGS}") as outer:
        with faults(f"error@{BESTSELLERS}") as inner:
            assert stars() == 4
            assert stars("/bestsellers") is None
        assert stars() is None
        assert stars("/bestsellers") == 4
    assert inner.fired == [f"error@{BESTSELLERS}"]
    assert inner.passed == [RATINGS, BESTSELLERS]
    assert outer.fired == [f"error@{RATINGS}"]


def test_an_installed_fit_is_put_back_and_its_name_used() -> None:
    activate(installed := Runtime("store", KEYS))
    try:
        with pytest.raises(NotFired, match="store>http:GET:ratings"), faults(f"error@{RATINGS}"):
            stars()
        with faults(Fault("store>http:GET:ratings/titles/*", "error")):
            stars()
        with faults(f"error@{RATINGS}", service="shop"):
            stars()
        assert runtime.active() is installed
    finally:
        activate(None)


def test_a_call_over_a_socket_passes_one_point_though_fit_is_installed_beneath() -> None:
    activate(Runtime("api", KEYS))
    patch_all()
    try:
        with served(echo_app()) as url:
            point = f"api>http:GET:{url.removeprefix('http://')}/home"
            with faults(f"delay@{point}", delay=0.01) as injected:
                httpx.get(f"{url}/home", trust_env=False, follow_redirects=True)

            async def call() -> None:
                async with httpx.AsyncClient(trust_env=False) as client:
                    await client.get(f"{url}/home")

            with faults(f"delay@{point}", delay=0.01) as injected_async:
                asyncio.run(call())
    finally:
        uninstall()
    assert injected.fired == injected_async.fired == [f"delay@{point}"]


def test_the_service_must_be_told_where_faults_do_not_tell_it() -> None:
    with pytest.raises(ValueError, match="shop") as raised, faults(f"error@{RATINGS}", "delay@a>b"):
        pass
    with pytest.raises(ValueError, match="say which service"), faults():
        pass
    with faults(service="shop") as injected:
        assert stars() == 4
    assert injected.passed == [RATINGS]
    assert "unknown" in str(raised.value)


def test_what_is_no_fault_is_refused() -> None:
    with pytest.raises(ValueError, match="write KIND@POINT"), faults(RATINGS):
        pass
    with pytest.raises(ValueError, match="kinds are"), faults(f"down@{RATINGS}"):
        pass


def test_an_application_in_the_same_process_is_reached() -> None:
    async def item(_: Request) -> JSONResponse:
        return JSONResponse({"stars": await stars_async()})

    transport = httpx.ASGITransport(Starlette(routes=[Route("/items/{key}", item)]))

    async def ask() -> object:
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return (await client.get("/items/17")).json()

    with faults(f"error@{RATINGS}") as injected:
        assert asyncio.run(ask()) == {"stars": None}
    assert asyncio.run(ask()) == {"stars": 4}
    assert injected.fired == [f"error@{RATINGS}"]


def test_headers_carry_the_faults_to_a_server_in_another_thread() -> None:
    seen = []

    with faults(f"error@{RATINGS}", must_fire=False) as injected:
        carried = injected.headers["baggage"].removeprefix("fit=")

        def verify() -> None:
            active = runtime.active()
            assert active is not None
            found = active.verify(carried)
            seen.append(found is not None and found.at(RATINGS) is not None)

        thread = threading.Thread(target=verify)
        thread.start()
        thread.join()
    assert seen == [True]


def test_spans_that_are_recorded_prove_it_as_ever() -> None:
    tracer = TracerProvider().get_tracer("test")
    with faults("error@shop>function:rank") as injected:
        span = tracer.start_span("GET", kind=trace.SpanKind.CLIENT)
        with trace.use_span(span), pytest.raises(fit_error()):
            rank()
    assert injected.fired == ["error@shop>function:rank"]


def test_it_needs_opentelemetrys_api_and_nothing_else() -> None:
    program = """
import sys
from importlib.abc import MetaPathFinder

class Missing(MetaPathFinder):
    def find_spec(self, name, *_):
        banned = {"httpx", "fastapi", "pydantic", "sqlalchemy", "pytest", "networkx"}
        if name.partition(".")[0] in banned or name.startswith("opentelemetry.sdk"):
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Missing())
from ldfi import fit, testing
from ldfi.fit.protocol.errors import InjectedFault

@fit.point("function", "rank")
def rank():
    return 1

with testing.faults("error@shop>function:rank") as injected, testing.ControlPlane() as plane:
    try:
        rank()
    except InjectedFault:
        print(*injected.fired)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("error@shop>function:rank", "")


@pytest.mark.parametrize(
    ("kind", "raised"),
    [("refused", httpx.ConnectError), ("reset", httpx.ReadError), ("timeout", httpx.ReadTimeout)],
)
def test_a_call_over_a_fake_fails_as_its_kind_does(kind: str, raised: type[Exception]) -> None:
    with (
        faults(f"{kind}@{RATINGS}") as injected,
        httpx.Client(transport=httpx.MockTransport(answer), timeout=0.05) as client,
        pytest.raises(raised),
    ):
        client.get("http://ratings/titles/17")
    assert injected.fired == [f"{kind}@{RATINGS}"]


def test_a_status_is_that_of_the_answer() -> None:
    with (
        faults(f"status:404@{RATINGS}"),
        httpx.Client(transport=httpx.MockTransport(answer)) as client,
    ):
        assert client.get("http://ratings/titles/17").status_code == 404


def test_a_kind_that_a_point_cannot_have_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="redis:loading cannot happen"),
        faults(f"redis:loading@{RATINGS}"),
    ):
        pytest.fail("it began")
