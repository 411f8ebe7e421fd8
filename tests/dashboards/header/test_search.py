"""Things are found by the words that people say, by parts of names, by how their id begins."""

from __future__ import annotations

import re
import time
from html import unescape
from pathlib import Path

import pytest
from sqlalchemy import select

from ldfi.analysis.phrases import said_fault, said_shortly
from ldfi.dashboards.header.search_story import words_of
from ldfi.experiments.cluster.tokens import Role
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import ExperimentRow, FindingRow
from ldfi.experiments.store.search import named
from ldfi.fit.protocol.kinds import FAMILIES
from tests.dashboards.browsing import Browser, Site, counting, site, text_of
from tests.dashboards.seeded import Seeded, crowd
from tests.kit.service import service

OPTION = re.compile(r'<a role="option"[^>]* href="([^"]*)"')
GROUP = re.compile(r'<h3 id="found-\d+" role="presentation">([^<]*)</h3>')
AT_MOST_SECONDS = 0.2
"""Of CPU, everything included: others share the machine."""


def found(browser: Browser, typed: str) -> list[str]:
    """Where the options of the palette lead."""
    answer = browser.get("/search/found", params={"q": typed})
    assert answer.status_code == 200, answer.text
    return [unescape(to) for to in OPTION.findall(answer.text)]


def test_each_kind_of_thing_is_found(viewer: Browser, seeded: Seeded) -> None:
    assert "/calendar" in found(viewer, "calen")
    assert found(viewer, "LICENSE")[0] == "/map?down=license"
    assert found(viewer, "boot")[0] == "/classes/GET%20%2Fboot"
    assert f"/campaigns/{seeded.campaigns['boot screen only']}" in found(viewer, "screen boot")
    for group in ("findings", "experiments"):
        newest = getattr(seeded, group)[0]
        assert f"/{group}/{newest}" in found(viewer, newest[:8].upper())
        assert found(viewer, newest)[-1] == f"/{group}/{newest}"
    assert found(viewer, "no-such-thing-anywhere") == []
    assert "Nothing is called so" in text_of(viewer.get("/search?q=no-such-thing-anywhere"))


def test_without_a_word_there_are_the_pages(viewer: Browser) -> None:
    answer = viewer.get("/search/found")
    assert GROUP.findall(answer.text) == ["Actions", "Pages"]


@pytest.mark.parametrize(
    ("role", "pages"),
    [
        ("viewer", set()),
        ("operator", {"/halt", "/campaigns/new"}),
        ("admin", {"/halt", "/campaigns/new", "/tokens"}),
    ],
)
def test_nobody_is_sent_to_a_page_that_is_not_theirs(
    reading: Site, role: Role, pages: set[str]
) -> None:
    browser = reading.logged_in(role)
    offered = set(found(browser, ""))
    assert offered & {"/halt", "/campaigns/new", "/tokens"} == pages
    assert all(browser.get(to).status_code == 200 for to in offered)


def test_a_sentence_as_it_stands_on_a_page_finds_what_it_says(
    reading: Site, viewer: Browser, seeded: Seeded
) -> None:
    with reading.app.state.database.read() as session:
        findings = list(session.scalars(select(FindingRow)))
        tried = list(session.scalars(select(ExperimentRow).limit(10)))
    assert len(findings) == len(seeded.findings)
    for row in findings:
        short = said_shortly(row.faults)
        assert f"/findings/{row.id}" in found(viewer, f"{row.request_class} is lost when {short}")
    for each in tried:
        said = ", ".join(said_fault(fault) for fault in each.hypothesis)
        with reading.app.state.database.read() as session:
            query = [*words_of(f"{each.request_class}: {said}", {})]
            ids = {row.id for row in named(session, query, 1_000) if row.what == "experiment"}
        assert each.id in ids, said


@pytest.mark.parametrize("family", [*FAMILIES, "down"])
def test_every_kind_of_failure_is_found_as_it_is_said(tmp_path: Path, family: str) -> None:
    arguments = {"status": ":503", "grpc": ":UNAVAILABLE", "exception": ":KeyError", "sql": ":lost"}
    arguments |= {"redis": ":loading", "slow": ":2"}
    kind = family + arguments.get(family, "")
    point, callees = "web>http:GET:10.0.0.7/items/*", {"web>http:GET:10.0.0.7/items/*": "Lager Süd"}
    where = "Lager Süd" if family == "down" else point
    database = Database(f"sqlite:///{tmp_path / 'x.sqlite3'}")
    with database.change(1.0) as change:
        for id_, faults in (("wanted", [f"{kind}@{where}"]), ("other", ["error@web>f:GET:z/y"])):
            row = FindingRow(id=id_, request_class="GET /b", faults=faults, state="open")
            row.found_at, row.campaign_id, row.experiment_id = 1.0, "c", "e"
            change.session.add(row)
    for said in (said_shortly, lambda faults, of: said_fault(faults[0], of)):
        sentence = f"GET /b fails more often when {said([f'{kind}@{where}'], callees)}."
        with database.read() as session:
            hits = named(session, words_of(sentence, callees), 10)
        assert [each.id for each in hits] == ["wanted"], sentence
    database.close()


@pytest.mark.parametrize(
    "typed",
    ["%", "_", "/", "\\", '"', "'", "' OR 1=1 --", "ünïcödé 🙂", "a " * 100, "[", "{{7*7}}"],
)
def test_whatever_is_typed_is_only_looked_for(viewer: Browser, typed: str) -> None:
    assert viewer.get("/search", params={"q": typed}).status_code == 200
    if typed in {"%", "_", "\\", '"'}:  # no name has any
        assert [to for to in found(viewer, typed) if "experiments/" in to] == []


def test_what_cannot_be_typed_is_refused(viewer: Browser) -> None:
    for typed in ("\0", "a\nb", "x" * 201):
        assert viewer.get("/search/found", params={"q": typed}).status_code == 422


def test_the_database_is_asked_once(reading: Site, viewer: Browser) -> None:
    with counting(reading.app) as without:
        found(viewer, "")
    with counting(reading.app) as asked:
        found(viewer, "license boot harmful")
    assert len(asked) == len(without) + 1
    assert "license" not in asked[-1]  # it is a parameter


@pytest.mark.parametrize("experiments", [300, pytest.param(10_000, marks=pytest.mark.long)])
def test_answers_stay_short_and_quick_however_many_experiments(
    seeded_url: str, experiments: int
) -> None:
    crowd(seeded_url, experiments)
    with site(service(seeded_url)) as here:
        viewer = here.logged_in("viewer")
        found(viewer, "license")
        for typed in ("license", "GET /play harmful license", "ffffffffffff", "is", "no-such-name"):
            took = []
            for _ in range(3):
                began = time.process_time()
                offered = found(viewer, typed)
                took.append(time.process_time() - began)
                assert len(offered) <= 36
            assert min(took) < AT_MOST_SECONDS, (typed, took)
        assert "More are called so" in text_of(viewer.get("/search?q=play"))
