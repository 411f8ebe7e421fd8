"""*Work* and *Proof* in a real Chromium: answers are in sight, and a plan follows its choices."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.browser.conftest import Site
from tests.kit.browser import (
    PAINT_MS,
    PHONE,
    Watched,
    in_sight,
    painted,
    watching,
)

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine


def test_what_runs_and_who_must_act_is_in_sight(worker: Watched) -> None:
    said = in_sight(worker.visit("/campaigns"))
    assert "No campaign is running and one run is planned. " in said
    assert "“working hours” begins its first run" in said
    assert "has to resume “player”, which is paused" in said
    worker.check()


def test_promise_and_use_and_the_open_questions_are_in_sight(worker: Watched, site: Site) -> None:
    said = in_sight(worker.visit(f"/campaigns/{site.known.campaigns['nightly']}"))
    assert "“nightly” is over: 7 weaknesses, and no question is open" in said
    assert "10,000 devices in a run, never more than 300 at once" in said
    assert re.search(r"Devices hurt \d+ of \d+ treated", said)
    assert "Open questions so far" in said
    worker.check()


def test_the_cost_follows_the_choices(worker: Watched) -> None:
    page = worker.visit("/campaigns/new")
    cost = page.locator("#cost")
    expect(cost).to_contain_text("it may use 10,000")
    page.get_by_label("Members per run").fill("120")
    expect(cost).to_contain_text("it may use 120")
    expect(page.get_by_label("Members per run")).to_be_focused()
    page.get_by_label("Members per run").fill("many")
    expect(cost).to_contain_text("Nobody can say while the form cannot be read")
    assert page.url.endswith("/campaigns/new")
    worker.check()


def test_the_cost_is_said_without_a_script_too(browser: Browser, site: Site) -> None:
    with watching(
        browser, site.url, size=PHONE, java_script_enabled=False, role="operator"
    ) as reader:
        page = reader.visit("/campaigns/new")
        page.get_by_label("Members per run").fill("120")
        page.get_by_role("button", name="What would it cost?").click()
        expect(page.locator("#cost")).to_contain_text("it may use 120")


def test_what_is_shown_and_open_is_in_sight(worker: Watched) -> None:
    said = in_sight(worker.visit("/certificates"))
    assert re.search(r"\d+ questions? (is|are) open", said)
    assert "Assumed" in said and "Doubted" in said
    worker.check()


def test_they_are_there_at_once(worker: Watched, site: Site) -> None:
    for path in (
        f"/campaigns/{site.known.campaigns['nightly']}",
        "/campaigns/new",
        "/certificates",
    ):
        paints = [painted(worker, path) for _ in range(3)]
        assert sorted(paints)[1] < PAINT_MS, path
