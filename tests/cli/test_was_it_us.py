"""``ldfi was-it-us``, against a service in which a campaign ran."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from ldfi.testing.live_service import served
from tests.kit.cli import At
from tests.kit.service import live_through, service


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[At]:
    url = f"sqlite:///{tmp_path_factory.mktemp('was-it-us') / 'ldfi.sqlite3'}"
    live_through(url)
    with served(service(url)) as address:
        yield At(address)


def test_nothing_ran_then(at: At) -> None:
    said = at("was-it-us", "--from", "1999-01-01 02:10Z", "--to", "1999-01-01 02:25Z", "--utc")
    assert said.startswith("No: nothing was injected.\nFrom 1999-01-01 02:10 UTC to ")


def test_it_may_have_been_us_and_how(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        answer = at.json("was-it-us", "--from", "1999-01-01T00:00Z", "--limit", "1", code=1)
        said = at("was-it-us", "--from", "1999-01-01T00:00Z", code=1)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert answer["answer"] == "perhaps"
    assert len(answer["items"]) == 1
    assert said.startswith(answer["words"])
    assert "From 1999-01-01 05:45 +0545 to " in said
    assert answer["items"][0]["id"] in said
