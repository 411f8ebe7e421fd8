"""Every library that fakes the wire: a planted failure is found through it, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.explore.pytest.sessions import Session

FAKES = Path(__file__).parent / "fakes"
WHOLE = [pytest.mark.long, pytest.mark.timeout(600)]
FEW = {
    *("httpx.py::test_respx", "httpx.py::test_pytest_httpx_async", "httpx.py::test_vcrpy"),
    *("httpx.py::test_fallback_above_respx", "httpx.py::test_retry_above_pytest_httpx"),
    *("requests.py::test_responses", "requests.py::test_fallback_above_responses"),
    *("aiohttp.py::test_aioresponses", "kinds.py::test_responses"),
}
"""What is tried each time, in this process; the others take a minute."""


def through(*tests: str) -> list[Any]:
    """Each of these tests, as an argument."""
    return [each if each in FEW else pytest.param(each, marks=WHOLE) for each in tests]


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Session:
    asked = [str(FAKES / f"case_{each}") for each in sorted(FEW)]
    return Session(tmp_path_factory.mktemp("few"), cases=FAKES, asked=asked, within=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("fakes"), cases=FAKES)


@pytest.fixture
def session(test: str, request: pytest.FixtureRequest) -> Session:
    """The session that ran this test."""
    found: Session = request.getfixturevalue("few" if test in FEW else "whole")
    return found


@pytest.mark.parametrize(
    "test",
    through(
        *("httpx.py::test_respx", "httpx.py::test_respx_async"),
        *("httpx.py::test_respx_of_httpx", "httpx.py::test_pytest_httpx"),
        *("httpx.py::test_pytest_httpx_async", "httpx.py::test_vcrpy"),
        *("httpx.py::test_vcrpy_async", "httpx.py::test_replaced_by_hand"),
        *("httpx.py::test_written_by_hand", "requests.py::test_responses"),
        *("requests.py::test_vcrpy", "aiohttp.py::test_aioresponses"),
        "aiohttp.py::test_vcrpy",
    ),
)
def test_a_planted_failure_is_found_through_a_fake(session: Session, test: str) -> None:
    document = session.documents[f"case_{test}"]

    assert [each["injected"] for each in document["findings"]] == [
        ["refused@app>http:GET:stock/*"]
    ], session.output
    assert len(document["points"]) == 2
    assert document["never_fired"] == []


@pytest.mark.parametrize(
    "test",
    through(
        *("httpx.py::test_fallback_above_mock", "httpx.py::test_fallback_above_written"),
        *("httpx.py::test_fallback_above_respx", "httpx.py::test_fallback_above_pytest_httpx"),
        *("httpx.py::test_fallback_above_vcrpy", "httpx.py::test_fallback_out_of_sight"),
    ),
)
def test_faults_strike_beneath_what_an_application_puts_above_the_wire(
    session: Session, test: str
) -> None:
    document = session.documents[f"case_{test}"]

    assert [each["injected"] for each in document["findings"]] == [
        ["refused@app>http:GET:backup/*", "refused@app>http:GET:stock/*"]
    ], session.output


@pytest.mark.parametrize(
    "test",
    through(
        *("httpx.py::test_retry_above_pytest_httpx", "requests.py::test_responses_retried"),
        "requests.py::test_responses_delayed",
    ),
)
def test_retries_are_above_it_too(session: Session, test: str) -> None:
    document = session.documents[f"case_{test}"]

    kind = "delay" if test.endswith("delayed") else "refused"
    assert [each["injected"] for each in document["findings"]] == [
        [f"{kind}@app>http:GET:stock/*"]
    ], session.output
    assert len(document["points"]) == 1


@pytest.mark.parametrize("test", ["requests.py::test_fallback_above_responses"])
def test_a_fallback_in_an_adapter_is_no_false_alarm(session: Session, test: str) -> None:
    # Both attempts are within one span of requests, so the second is no call by itself
    document = session.documents[f"case_{test}"]

    assert (document["verdict"], document["findings"]) == ("tolerated", [])


KINDS = ("refused", "reset", "timeout", "status:500", "empty", "truncated", "corrupt")
THROUGH = (
    *("respx", "respx_async", "pytest_httpx", "pytest_httpx_async"),
    *("vcrpy_httpx", "vcrpy_httpx_async", "responses", "vcrpy_requests"),
    *("aioresponses", "vcrpy_aiohttp"),
)


@pytest.mark.parametrize("test", through(*(f"kinds.py::test_{fake}" for fake in THROUGH)))
def test_failures_of_every_kind_are_found_through_a_fake_and_told_apart(
    session: Session, test: str
) -> None:
    """The application masks no failure of ``stock``, and every one of ``reviews`` but a status."""
    document = session.documents[f"case_{test}"]

    found = {fault for each in document["findings"] for fault in each["injected"]}
    assert found == {
        *(f"{kind}@app>http:GET:stock/*" for kind in KINDS),
        "status:500@app>http:GET:reviews/*",
    }, session.output
    assert (len(document["findings"]), document["unfired"]) == (len(KINDS) + 1, [])


NEVER = (
    *("respx", "respx_async", "pytest_httpx", "vcrpy_httpx"),
    *("responses", "vcrpy_requests", "aioresponses", "vcrpy_aiohttp"),
)


@pytest.mark.parametrize("test", through(*(f"kinds.py::test_{fake}_never" for fake in NEVER)))
def test_a_fault_that_cannot_fire_through_a_fake_makes_the_test_fail(
    session: Session, test: str
) -> None:
    """Callers without a timeout cannot have one."""
    document = session.documents[f"case_{test}"]

    assert document["verdict"] == "inconclusive"
    assert document["reason"].startswith("no fault has fired at app>http:GET:reviews/*, app>")
    assert session.outcomes[test.rpartition("::")[2]] == ["failure"]


@pytest.mark.parametrize(
    "test", through("kinds.py::test_fallback_respx", "kinds.py::test_fallback_pytest_httpx")
)
def test_a_fallback_in_a_transport_is_no_false_alarm_whatever_the_kind(
    session: Session, test: str
) -> None:
    document = session.documents[f"case_{test}"]

    assert (document["verdict"], document["findings"]) == ("tolerated", []), session.output
    assert len(document["points"]) == 2
