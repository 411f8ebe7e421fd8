"""What is found by name, on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import CampaignRow, ExperimentRow, FindingRow
from ldfi.experiments.store.search import Term, named

PLAY = "error@api>http:POST:license/keys"
MARKET = "refused@web>http:GET:10.0.0.7/100%_a/*"


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """It has one of every kind, and experiments two."""
    database = Database(database_url)
    nightly = CampaignRow(id="c1aa", name="Nächtlich", state="paused", created_at=2.0)
    nightly.definition = {}
    lost = FindingRow(id="f1aa", request_class="GET /play", faults=[PLAY], state="open")
    lost.found_at, lost.campaign_id, lost.experiment_id = 1.0, "c1aa", "e1aa"
    with database.change(1.0) as change:
        change.session.add_all([lost, nightly])
        change.session.add(_experiment("e1aa", "GET /play", PLAY, "harmful", 3.0))
        change.session.add(_experiment("e2aa", "GET /Märkte", MARKET, None, 4.0))
    yield database
    database.close()


def _experiment(
    id_: str, request_class: str, fault: str, verdict: str | None, at: float
) -> ExperimentRow:
    row = ExperimentRow(id=id_, campaign_id="c1aa", request_class=request_class, purpose="explore")
    row.hypothesis = row.faults = [fault]
    row.state, row.verdict, row.created_at = "decided" if verdict else "aborted", verdict, at
    return row


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
def test_every_word_has_to_stand_somewhere(
    database: Database, words: list[Term], ids: list[str]
) -> None:
    with database.read() as session:
        assert [each.id for each in named(session, words, 10)] == ids


def test_the_newest_are_found_and_no_more_than_asked_for(database: Database) -> None:
    with database.read() as session:
        (experiment, finding) = named(session, [Term("get")], 1)
    assert (finding.what, finding.faults, finding.state) == ("finding", (PLAY,), "open")
    assert (experiment.id, experiment.state, experiment.at) == ("e2aa", "aborted", 4.0)
