from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
import urllib3
from opentelemetry.instrumentation.requests import RequestsInstrumentor
from opentelemetry.instrumentation.urllib3 import URLLib3Instrumentor
from requests.adapters import HTTPAdapter
from urllib3.util import Retry

from ldfi.fit.clients import requests_urllib3 as ours
from tests.fit.clients.contract import Requests, holds, seen, unharmed


@pytest.fixture
def session(requests_made: Requests) -> Iterator[requests.Session]:
    RequestsInstrumentor().instrument(tracer_provider=requests_made.provider)
    with requests.Session() as session:
        session.trust_env = False
        yield session
    RequestsInstrumentor().uninstrument()


@pytest.fixture
def pool(requests_made: Requests) -> Iterator[urllib3.PoolManager]:
    URLLib3Instrumentor().instrument(tracer_provider=requests_made.provider)
    with urllib3.PoolManager() as manager:
        yield manager
    URLLib3Instrumentor().uninstrument()


@pytest.fixture
def point(server: str) -> str:
    return f"api>http:GET:{server.removeprefix('http://')}/titles/*"


def unavailable(answer: object) -> bool:
    return getattr(answer, "status_code", getattr(answer, "status", None)) == 503


def test_requests(
    requests_made: Requests, session: requests.Session, server: str, point: str
) -> None:
    holds(
        requests_made,
        point,
        seen(lambda: session.get(f"{server}/titles/17?page=2", timeout=(1, 0.2))),
        unavailable,
        lambda answer: isinstance(answer, requests.ReadTimeout),
    )


def test_urllib3(
    requests_made: Requests, pool: urllib3.PoolManager, server: str, point: str
) -> None:
    timeout = urllib3.Timeout(connect=1, read=0.2)

    def call() -> urllib3.BaseHTTPResponse:
        return pool.request("GET", f"{server}/titles/17?page=2", timeout=timeout, retries=False)

    holds(
        requests_made,
        point,
        seen(call),
        unavailable,
        lambda answer: isinstance(answer, urllib3.exceptions.ReadTimeoutError),
    )


def test_an_injected_answer_reads_as_any_other_and_gives_its_connection_back(
    requests_made: Requests, session: requests.Session, server: str, point: str
) -> None:
    session.mount("http://", HTTPAdapter(pool_connections=1, pool_maxsize=1, pool_block=True))
    with requests_made.request(f"error@{point}"):
        for _ in range(3):  # a connection that was kept would block the second
            assert session.get(f"{server}/titles/17").text == "fault injected"
        streamed = session.get(f"{server}/titles/17", stream=True)
        assert b"".join(streamed.iter_content(4)) == b"fault injected"
    with pytest.raises(requests.HTTPError):
        streamed.raise_for_status()
    assert session.get(f"{server}/titles/17").status_code == 200


@pytest.mark.parametrize(("fails", "status"), [(2, 200), (3, 503)])
def test_the_clients_own_retries_save_it_or_not(
    requests_made: Requests,
    session: requests.Session,
    server: str,
    point: str,
    fails: int,
    status: int,
) -> None:
    retry = Retry(total=2, status_forcelist=[503], backoff_factor=0, raise_on_status=False)
    session.mount("http://", HTTPAdapter(max_retries=retry))

    with requests_made.request(f"error:{fails}@{point}"):
        assert session.get(f"{server}/titles/17").status_code == status

    run = requests_made.lineage()
    assert run.fired == {f"error@{point}"}
    assert run.failed == ({point} if status == 503 else set())


def test_a_total_timeout_counts_for_the_read(
    requests_made: Requests, pool: urllib3.PoolManager, server: str, point: str
) -> None:
    with (
        requests_made.request(f"delay@{point}", delay_ms=60_000),
        pytest.raises(urllib3.exceptions.ReadTimeoutError),
    ):
        pool.request("GET", f"{server}/titles/17", timeout=urllib3.Timeout(0.2), retries=False)


def test_without_a_timeout_a_delay_is_outlasted(
    requests_made: Requests, pool: urllib3.PoolManager, server: str, point: str
) -> None:
    with requests_made.request(f"delay@{point}", delay_ms=80):
        assert pool.request("GET", f"{server}/titles/17").status == 200
    assert requests_made.lineage().support == {point}


def test_the_host_is_unharmed(
    requests_made: Requests, pool: urllib3.PoolManager, server: str, point: str
) -> None:
    call = seen(lambda: pool.request("GET", f"{server}/titles/17", timeout=1))
    unharmed(requests_made, ours, point, call, unavailable)
