"""What is exported for Envoy, in a real Envoy: the targeted upstream fails, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context

from ldfi.experiments.export.envoy import http_filters
from ldfi.experiments.export.mesh import proxy_faults
from ldfi.fit.context import Arm, encode
from ldfi.fit.faults import Fault
from ldfi.fit.keys import Keys
from tests.experiments.export.proxy import Proxy, envoy

KEYS = Keys.parse("k1:0123456789abcdef")
TITLES = Fault("api>http:GET:ratings/titles/*", "error")
SIMILAR = Fault("api>http:POST:ratings/titles/*/similar", "delay")
RPC = Fault("api>rpc:Get:/shop.Prices", "error")
OTHERS = [Fault(f"api>http:GET:service-{i}/", "error") for i in range(20)]
DELAY_MS = 700


def carried(*faults: Fault, arm: Arm = "treatment", expires: float = 60, ms: int = DELAY_MS) -> str:
    """The ``baggage`` header as an OpenTelemetry SDK sends a stamped request on."""
    value = encode(KEYS, "e7c1", arm, int(time.time() + expires), faults, delay_ms=ms)
    context = baggage.set_baggage("user", "a b,c", baggage.set_baggage("fit", value, Context()))
    carrier: dict[str, str] = {}
    W3CBaggagePropagator().inject(carrier, context)
    return carrier["baggage"]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    faults = proxy_faults([TITLES, SIMILAR], DELAY_MS) + proxy_faults([RPC], DELAY_MS)
    filters = http_filters(faults, "ratings", 2)["http_filters"]
    with envoy(filters, tmp_path_factory.mktemp("envoy")) as running:
        yield running


@pytest.mark.parametrize(
    "header",
    [
        lambda: carried(TITLES),
        lambda: carried(TITLES, *OTHERS),
        lambda: "fit=" + carried(TITLES, SIMILAR).partition("fit=")[2].partition(",")[0],
        lambda: "a=b , " + carried(TITLES) + ",c=d;p=q",
        lambda: carried(TITLES).replace(",", " ;p=q,"),
    ],
)
@pytest.mark.parametrize("path", ["/titles/17", "/titles/tt0111161?limit=3&x=/y"])
def test_a_request_that_carries_the_fault_fails(
    proxy: Proxy, header: Callable[[], str], path: str
) -> None:
    response = proxy.ask(path, baggage=header())

    assert (response.status_code, response.text) == (503, "fault filter abort")


@pytest.mark.parametrize(
    "header",
    [
        lambda: "",
        lambda: "user=u1",
        lambda: carried(TITLES, arm="control"),
        lambda: carried(*OTHERS),
        carried,
        lambda: carried(Fault(TITLES.point, "delay")),
        lambda: carried(Fault(TITLES.point, "error", 2)),
        lambda: carried(Fault(TITLES.point + "/more", "error")),
        lambda: carried(TITLES).replace("fit=", "unfit="),
        lambda: carried(TITLES).replace("fit=", "a;fit="),
        lambda: carried(TITLES).replace("fit=1.", "fit=2."),
        lambda: carried(TITLES).partition(",")[0][:-30],
    ],
)
def test_no_other_request_does(proxy: Proxy, header: Callable[[], str]) -> None:
    assert proxy.ask("/titles/17", baggage=header()).text == "ratings"


def test_another_upstream_method_or_path_does_not_fail(proxy: Proxy) -> None:
    header = carried(TITLES)

    assert proxy.ask("/titles/17", to="other", baggage=header).text == "other"
    assert proxy.ask("/titles/17", method="POST", baggage=header).text == "ratings"
    for path in ("/titles", "/titles/", "/titles/17/more", "/x/titles/17", "/?/titles/17"):
        assert proxy.ask(path, baggage=header).text == "ratings", path


def test_side_by_side_only_the_requests_that_carry_it_fail(proxy: Proxy) -> None:
    headers = [carried(TITLES) if i % 4 == 0 else carried(*OTHERS) for i in range(200)]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda h: proxy.ask("/titles/1", baggage=h).status_code, headers))

    assert answers == [503 if i % 4 == 0 else 200 for i in range(200)]


def test_a_delay_hangs_for_its_length_and_then_goes_through(proxy: Proxy) -> None:
    def ask(header: str) -> tuple[str, float]:
        started = time.monotonic()
        text = proxy.ask("/titles/17/similar", method="POST", baggage=header).text
        return text, time.monotonic() - started

    text, seconds = ask(carried(SIMILAR))
    assert text == "ratings"
    assert seconds >= DELAY_MS / 1000
    for other in (carried(TITLES), carried(SIMILAR, ms=70), carried(SIMILAR, ms=7000)):
        text, seconds = ask(other)
        assert (text, seconds < DELAY_MS / 1000) == ("ratings", True)


def test_of_more_than_the_limit_the_rest_go_through(proxy: Proxy) -> None:
    header = carried(SIMILAR)

    def ask(_: int) -> bool:
        started = time.monotonic()
        proxy.ask("/titles/17/similar", method="POST", baggage=header)
        return time.monotonic() - started >= DELAY_MS / 1000

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(ask, range(6))) == 2


def test_a_remote_procedure_call_fails_with_unavailable(proxy: Proxy) -> None:
    headers = {"content_type": "application/grpc", "method": "POST"}

    failed = proxy.ask("/shop.Prices/Get", baggage=carried(RPC), **headers)
    other = proxy.ask("/shop.Prices/Set", baggage=carried(RPC), **headers)

    assert (failed.status_code, failed.headers["grpc-status"]) == (200, "14")
    assert other.text == "ratings"


def test_the_access_log_proves_what_fired(proxy: Proxy) -> None:
    proxy.ask("/titles/17", baggage=carried(TITLES))
    deadline = time.monotonic() + 15
    while f'"fit.point":"{TITLES.point}"' not in (text := proxy.log.read_text()):
        assert time.monotonic() < deadline, text
        time.sleep(0.1)

    assert "FI {" in text


def test_what_the_warning_says_is_so_neither_signature_nor_expiry_is_checked(
    proxy: Proxy,
) -> None:
    stranger = carried(TITLES).partition(",")[0][:-22] + "A" * 22

    assert proxy.ask("/titles/17", baggage=stranger).status_code == 503
    assert proxy.ask("/titles/17", baggage=carried(TITLES, expires=-60)).status_code == 503


def test_a_context_of_a_hundred_faults_matches_in_little_time(proxy: Proxy, tmp_path: Path) -> None:
    many = [Fault(f"api>http:GET:service-{i}/", "error") for i in range(99)]
    started = time.monotonic()
    for _ in range(50):
        assert proxy.ask("/titles/17", baggage=carried(TITLES, *many)).status_code == 503

    assert time.monotonic() - started < 10
