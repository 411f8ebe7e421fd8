"""Services in processes of their own, as a test meets them: what is found, and what is said where
something is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.explore.pytest.sessions import Session

AWAY = Path(__file__).parent / "away"
ROOT = Path(__file__).parents[3]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]  # seven interpreters


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    folder = tmp_path_factory.mktemp("away")
    pages = "page silent alone keyless slow restarts"
    return Session(folder, cases=AWAY, PAGES=pages, PYTHONPATH=str(ROOT))


@pytest.mark.parametrize(
    ("test", "service", "largest"),
    [
        ("test_page", "page", 2),
        ("test_slow", "slow", 2),
        ("test_restarts", "restarts", 1),
        ("test_async", "page", 1),
    ],
)
def test_what_hurts_is_found_and_the_tests_own_request_is_no_dependency(
    session: Session, test: str, service: str, largest: int
) -> None:
    document = session.tests[test]

    assert document["verdict"] == "harmful", session.output
    pair = (
        f"{service}>http:GET:store/bestsellers fails (refused)"
        f" and {service}>http:GET:store/reviews/* fails (refused)"
    )
    price = f"{service}>http:GET:store/price/* fails (refused)"
    assert sorted(each["words"] for each in document["findings"]) == [pair, price][-largest:]
    assert all(point.startswith(f"{service}>") for point in document["points"])
    assert document["runs"] <= document["exhaustive"]


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("test_silent", "no spans came from what answered GET http://127.0.0.1:"),
        ("test_silent", "ldfi explore env"),
        ("test_alone", "only of traces that alone, store began"),
        ("test_alone", "OTEL_PROPAGATORS=tracecontext,baggage"),
        ("test_keyless", "no injector in keyless"),
    ],
)
def test_what_cannot_be_seen_is_inconclusive_and_it_is_said_what_to_set(
    session: Session, test: str, said: str
) -> None:
    document = session.tests[test]

    assert document["verdict"] == "inconclusive", session.output
    assert document["findings"] == []
    assert said in document["reason"]
    assert session.outcomes[test] == ["failure"]


def test_a_failure_by_chance_is_no_finding(session: Session) -> None:
    document = session.tests["test_flaky"]

    assert (document["verdict"], document["findings"]) == ("tolerated", []), session.output
    assert document["refuted"]


def test_an_error_that_the_test_allows_hides_nothing(session: Session) -> None:
    """It accepts whatever comes while something is down: nothing hurts, and each fault was tried
    by itself."""
    document = session.tests["test_degraded"]

    assert document["verdict"] == "tolerated", session.output
    assert document["runs"] >= 2 + len(document["points"])


def test_workers_of_xdist_have_services_of_their_own(tmp_path: Path) -> None:
    session = Session(
        tmp_path,
        *("-n", "2", "-k", "test_async or test_flaky"),
        cases=AWAY,
        PYTHONPATH=str(ROOT),
    )

    verdicts = {test: document["verdict"] for test, document in session.tests.items()}
    assert verdicts == {"test_async": "harmful", "test_flaky": "tolerated"}, session.output


SILENT = """
import threading, httpx, pytest
from http.server import BaseHTTPRequestHandler, HTTPServer

class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_): pass

@pytest.mark.ldfi(time_limit=1)
def test_page():
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.handle_request).start()
        assert httpx.get(f"http://127.0.0.1:{server.server_port}/", trust_env=False).is_success
"""


def test_services_that_ran_before_are_waited_for_and_that_is_said(tmp_path: Path) -> None:
    (tmp_path / "case_silent.py").write_text(SILENT)

    session = Session(
        *(tmp_path, "--receive", "127.0.0.1:0"),
        cases=tmp_path,
        LDFI_BACK_OFF="12",
        OTEL_BSP_SCHEDULE_DELAY="20",
        PYTHONPATH=str(ROOT),
    )

    assert "An exporter that met a closed port keeps away" in session.output
    document = session.tests["test_page"]
    assert document["verdict"] == "inconclusive"
    assert " in 12 s. Run the services with" in document["reason"]
