"""What is found by name, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from ldfi.experiments.store import Database
from ldfi.experiments.store.search import Term, named
from tests.kit.rows import campaign_row, experiment_row, finding_row

PLAY = "error@api>http:POST:license/keys"
MARKET = "refused@web>http:GET:10.0.0.7/100%_a/*"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """It has one of every kind, and experiments two."""
    of: dict[str, Any] = {"campaign_id": "c1aa"}
    hurt = {"verdict": "harmful", "created_at": 3.0}
    called_off = {"state": "aborted", "created_at": 4.0}
    rows = [
        campaign_row("c1aa", name="Nächtlich", state="paused", created_at=2.0),
        finding_row("f1aa", [PLAY], request_class="GET /play", experiment_id="e1aa", **of),
        experiment_row("e1aa", [PLAY], request_class="GET /play", **of | hurt),
        experiment_row("e2aa", [MARKET], request_class="GET /Märkte", **of | called_off),
    ]
    with closing(Database(database_url)) as database:
        with database.change(1.0) as change:
            change.session.add_all(rows)
        yield database


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ([Term("license")], ["e1aa", "f1aa"]),
        ([Term("license"), Term("harm")], ["e1aa"]),
        ([Term("get")], ["e2aa", "e1aa", "f1aa"]),
        ([Term("e2a")], ["e2aa"]),
        ([Term("2a")], []),
        ([Term("aborted")], ["e2aa"]),
        ([Term("chtlich")], ["c1aa"]),
        ([Term("märkte")], ["e2aa"]),
        ([Term("100%_a")], ["e2aa"]),
        ([Term("0%a")], []),
        ([Term("_")], ["e2aa"]),
        ([Term('"')], []),
        ([Term("\\")], []),
        ([Term("answers", kinds=("refused",))], ["e2aa"]),
        ([Term("answers", kinds=("refuse", "timeout"))], []),
        ([Term("lager", points=("web>http:GET:10.0.0.7/100%_a/*",))], ["e2aa"]),
        ([Term("lager", points=("web>http:GET:10.0.0.7/100%_a",))], []),
        ([], []),
    ],
)
def test_every_word_stands_somewhere(database: Database, words: list[Term], ids: list[str]) -> None:
    with database.read() as session:
        assert [each.id for each in named(session, words, 10)] == ids


def test_the_newest_are_found_and_no_more_than_asked_for(database: Database) -> None:
    with database.read() as session:
        (experiment, finding) = named(session, [Term("get")], 1)
    assert (finding.what, finding.faults, finding.state) == ("finding", (PLAY,), "open")
    assert (experiment.id, experiment.state, experiment.at) == ("e2aa", "aborted", 4.0)
