"""However much is stored, a page asks the database as often."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI

from ldfi.dashboards.pages.findings import AT_ONCE
from tests.dashboards.browsing import Browser, Site, counting, site
from tests.dashboards.seeded import Seeded, crowd
from tests.dashboards.test_guards import ALLOWED, filled
from tests.experiments.applications import service

MOST = 12
"""No page asks more often than this, the look at the session's token included."""

OTHERS = 150
TURNS = {"/findings": math.ceil(OTHERS / AT_ONCE)}
"""Weaknesses are explained so many at a time, each lot with one question, so that ticks go on."""

PAGES = sorted(path for method, path in ALLOWED if method == "GET" and path != "/live")


def asked(app: FastAPI, browser: Browser, path: str) -> int:
    """How often a page asks the database."""
    with counting(app) as statements:
        response = browser.get(path)
    assert response.status_code in {200, 204, 422}, response.text
    return len(statements)


@pytest.fixture(scope="module")
def few_and_many(
    seeded_file: tuple[Path, Seeded], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[tuple[FastAPI, Site], tuple[FastAPI, Site]]]:
    """A service over little and one over much."""
    folder = tmp_path_factory.mktemp("queries")
    urls = []
    for name in ("few", "many"):
        shutil.copy(seeded_file[0], folder / name)
        urls.append(f"sqlite:///{folder / name}")
    crowd(urls[1], 1_500, OTHERS)
    few, many = map(service, urls)
    with site(few) as first, site(many) as second:
        yield (few, first), (many, second)


def test_a_page_asks_as_often_however_much_there_is(
    few_and_many: tuple[tuple[FastAPI, Site], tuple[FastAPI, Site]],
    seeded_file: tuple[Path, Seeded],
) -> None:
    (few, first), (many, second) = few_and_many
    here, there = first.logged_in("admin"), second.logged_in("admin")
    found = {}
    for page in PAGES:
        path = filled(page, seeded_file[1])
        found[page] = (asked(few, here, path) + TURNS.get(page, 0), asked(many, there, path))
    assert {page: counts for page, counts in found.items() if counts[0] != counts[1]} == {}
    assert {page: counts for page, counts in found.items() if counts[1] > MOST} == {}


def test_what_if_asks_as_often_for_all_classes_as_for_one(
    few_and_many: tuple[tuple[FastAPI, Site], tuple[FastAPI, Site]],
) -> None:
    (app, here), _ = few_and_many
    browser = here.logged_in("viewer")
    one = asked(app, browser, "/what-if?down=*&request_class=GET%20%2Fboot")
    assert asked(app, browser, "/what-if?down=*") == one


def test_a_long_list_goes_on_where_it_was_left(
    few_and_many: tuple[tuple[FastAPI, Site], tuple[FastAPI, Site]],
) -> None:
    app, here = few_and_many[1]
    browser = here.logged_in("admin")
    for path in ("/audit", "/campaigns", "/tokens", "/maintenance"):
        first = browser.get(path).text
        older = first.partition('rel="next"')[0].rpartition('href="')[2].partition('"')[0]
        assert "cursor=" in older, path
        second = browser.get(path + older.replace("&amp;", "&"))
        assert second.is_success
        assert "Back to the newest" in second.text
        assert asked(app, browser, path + older.replace("&amp;", "&")) <= MOST
