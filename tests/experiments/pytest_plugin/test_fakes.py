"""Every library that fakes the wire: a planted failure is found through it, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.experiments.pytest_plugin.test_plugin import Session

pytestmark = pytest.mark.timeout(400)  # whoever is first waits for a whole session of pytest
FAKES = Path(__file__).parent / "fakes"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("fakes"), "-k", "not case_kinds", cases=FAKES)


@pytest.fixture(scope="module")
def of_kinds(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("kinds"), "-k", "case_kinds", cases=FAKES)


@pytest.mark.parametrize(
    "test",
    [
        *("httpx.py::test_respx", "httpx.py::test_respx_async"),
        *("httpx.py::test_respx_of_httpx", "httpx.py::test_pytest_httpx"),
        *("httpx.py::test_pytest_httpx_async", "httpx.py::test_vcrpy"),
        *("httpx.py::test_vcrpy_async", "httpx.py::test_replaced_by_hand"),
        *("httpx.py::test_written_by_hand", "requests.py::test_responses"),
        *("requests.py::test_vcrpy", "aiohttp.py::test_aioresponses"),
        "aiohttp.py::test_vcrpy",
    ],
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
    [
        *("httpx.py::test_fallback_above_mock", "httpx.py::test_fallback_above_written"),
        *("httpx.py::test_fallback_above_respx", "httpx.py::test_fallback_above_pytest_httpx"),
        *("httpx.py::test_fallback_above_vcrpy", "httpx.py::test_fallback_out_of_sight"),
    ],
)
def test_faults_strike_beneath_what_an_application_puts_above_the_wire(
    session: Session, test: str
) -> None:
    document = session.documents[f"case_{test}"]

    assert [each["injected"] for each in document["findings"]] == [
        ["refused@app>http:GET:backup/*", "refused@app>http:GET:stock/*"]
    ], session.output


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("httpx.py::test_retry_above_pytest_httpx", ["refused@app>http:GET:stock/*"]),
        ("requests.py::test_responses_retried", ["refused@app>http:GET:stock/*"]),
        ("requests.py::test_responses_delayed", ["delay@app>http:GET:stock/*"]),
    ],
)
def test_retries_are_above_it_too(session: Session, test: str, expected: list[str]) -> None:
    document = session.documents[f"case_{test}"]

    assert [each["injected"] for each in document["findings"]] == [expected], session.output
    assert len(document["points"]) == 1


def test_a_fallback_in_an_adapter_is_no_false_alarm(session: Session) -> None:
    # Both attempts are within one span of requests, so the second is no call by itself
    document = session.documents["case_requests.py::test_fallback_above_responses"]

    assert (document["verdict"], document["findings"]) == ("tolerated", [])


KINDS = ("refused", "reset", "timeout", "status:500", "empty", "truncated", "corrupt")
THROUGH = (
    *("respx", "respx_async", "pytest_httpx", "pytest_httpx_async"),
    *("vcrpy_httpx", "vcrpy_httpx_async", "responses", "vcrpy_requests"),
    *("aioresponses", "vcrpy_aiohttp"),
)


@pytest.mark.parametrize("fake", THROUGH)
def test_failures_of_every_kind_are_found_through_a_fake_and_told_apart(
    of_kinds: Session, fake: str
) -> None:
    """The application masks no failure of ``stock``, and every one of ``reviews`` but a status."""
    document = of_kinds.documents[f"case_kinds.py::test_{fake}"]

    found = {fault for each in document["findings"] for fault in each["injected"]}
    assert found == {
        *(f"{kind}@app>http:GET:stock/*" for kind in KINDS),
        "status:500@app>http:GET:reviews/*",
    }, of_kinds.output
    assert (len(document["findings"]), document["unfired"]) == (len(KINDS) + 1, [])


@pytest.mark.parametrize(
    "fake",
    [
        *("respx", "respx_async", "pytest_httpx", "vcrpy_httpx"),
        *("responses", "vcrpy_requests", "aioresponses", "vcrpy_aiohttp"),
    ],
)
def test_a_fault_that_cannot_fire_through_a_fake_makes_the_test_fail(
    of_kinds: Session, fake: str
) -> None:
    """Callers without a timeout cannot have one."""
    name = f"test_{fake}_never"
    document = of_kinds.documents[f"case_kinds.py::{name}"]

    assert document["verdict"] == "inconclusive"
    assert document["reason"].startswith("no fault has fired at app>http:GET:reviews/*, app>")
    assert of_kinds.outcomes[name] == ["failure"]


@pytest.mark.parametrize("fake", ["respx", "pytest_httpx"])
def test_a_fallback_in_a_transport_is_no_false_alarm_whatever_the_kind(
    of_kinds: Session, fake: str
) -> None:
    document = of_kinds.documents[f"case_kinds.py::test_fallback_{fake}"]

    assert (document["verdict"], document["findings"]) == ("tolerated", []), of_kinds.output
    assert len(document["points"]) == 2
