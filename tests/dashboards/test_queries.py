"""However much is stored, a page asks the database as often."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from ldfi.dashboards.findings.findings import AT_ONCE
from tests.dashboards.browsing import Browser, Site, counting, site
from tests.dashboards.seeded import Seeded, crowd
from tests.dashboards.test_guards import ALLOWED, filled
from tests.kit.service import service

MOST = 12
"""No page asks more often than this, the look at the session's token included."""

OTHERS = 150
TURNS = {"/findings": math.ceil(OTHERS / AT_ONCE)}
"""Weaknesses are explained so many at a time, each lot with one question, so that ticks go on."""

DETAILS = re.compile(r"/(classes|point|experiments|findings|certificates)\b")
"""Pages that ask at most eight times."""


def most(page: str) -> int:
    """How often a page may ask."""
    return 8 + TURNS.get(page, 0) if DETAILS.match(page) else MOST


PAGES = sorted(
    path for method, path in ALLOWED if method == "GET" and path not in {"/live", "/what-if"}
)


def asked(app: FastAPI, browser: Browser, path: str) -> int:
    """How often a page asks the database, at the least: the engine asks by itself now and then."""
    counts = []
    for _ in range(3):
        with counting(app) as statements:
            response = browser.get(path)
        assert response.status_code in {200, 204, 422}, response.text
        counts.append(len(statements))
    return min(counts)


@pytest.fixture(scope="module")
def crowded(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """A service over much."""
    copy = shutil.copy(seeded_file[0], tmp_path_factory.mktemp("queries") / "many")
    crowd(f"sqlite:///{copy}", 400, OTHERS)
    with site(service(f"sqlite:///{copy}")) as many:
        yield many


def test_a_page_asks_as_often_however_much_there_is(
    reading: Site, crowded: Site, seeded: Seeded
) -> None:
    here, there = reading.logged_in("admin"), crowded.logged_in("admin")
    found = {}
    for page in PAGES:
        path = filled(page, seeded)
        few = asked(reading.app, here, path) + TURNS.get(page, 0)
        found[page] = (few, asked(crowded.app, there, path))
    assert {page: counts for page, counts in found.items() if counts[0] != counts[1]} == {}
    assert {page: counts for page, counts in found.items() if counts[1] > most(page)} == {}


def test_the_map_asks_as_often_for_all_classes_as_for_one(reading: Site, viewer: Browser) -> None:
    one = asked(reading.app, viewer, "/map?down=*&request_class=GET%20%2Fboot")
    assert asked(reading.app, viewer, "/map?down=*") == one


def test_a_long_list_goes_on_where_it_was_left(crowded: Site) -> None:
    browser = crowded.logged_in("admin")
    for path in ("/audit", "/campaigns", "/tokens", "/maintenance"):
        first = browser.get(path).text
        older = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        assert "cursor=" in older, path
        second = browser.get(path + older.replace("&amp;", "&"))
        assert second.is_success
        assert "Back to the newest" in second.text
        assert asked(crowded.app, browser, path + older.replace("&amp;", "&")) <= MOST
