"""Ten forms of tests, six subjects: each is right, or says loudly what it cannot know."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.explore.pytest.sessions import Document, Session

CASES = Path(__file__).parent / "matrix"
CHEAP = "test_function or AsynchronousInSubTests"
NEEDED = [["refused@app>http:GET:needed/"]]
EXPECTED = {
    "needed": ("harmful", NEEDED),
    "survived": ("tolerated", []),
    "grpc": ("harmful", NEEDED),  # the test's own call over gRPC is the request
    "seeds_and_cache": ("tolerated", []),  # so are its own commands no dependency
    "seeds_and_store": ("harmful", [["error@app>db:GET:localhost:PORT"]]),
    "without_timeout": ("inconclusive", []),
}


@pytest.fixture(scope="module")
def cheap(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("few"), "-k", CHEAP, cases=CASES, within=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(tmp_path_factory.mktemp("matrix"), cases=CASES, within=True)


@pytest.mark.parametrize("subject", EXPECTED)
def test_some_forms_of_a_test_are_right_or_loud(cheap: Session, subject: str) -> None:
    assert wrong(cheap, subject, 2) == {}


@pytest.mark.long
@pytest.mark.parametrize("subject", EXPECTED)
def test_each_form_of_a_test_is_right_or_loud(whole: Session, subject: str) -> None:
    assert wrong(whole, subject, 10) == {}


def wrong(session: Session, subject: str, forms: int) -> dict[str, object]:
    """What became of the tests of a subject of which something else was expected."""
    of_it: dict[str, Document] = {
        name: each
        for name, each in session.documents.items()
        if re.search(rf"\[{subject}[\]-]|_{subject}::", name)
    }
    assert len(of_it) == forms, session.output
    told = {name: (each["verdict"], _found(each)) for name, each in of_it.items()}
    return {
        name: (*each, of_it[name]["reason"])
        for name, each in told.items()
        if each != EXPECTED[subject]
    }


def _found(test: Document) -> list[list[str]]:
    return [
        [re.sub(r"localhost:\d+", "localhost:PORT", fault) for fault in finding["injected"]]
        for finding in test["findings"]
    ]
