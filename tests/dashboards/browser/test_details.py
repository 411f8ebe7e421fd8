"""Detail pages in a real browser: what runs is watched, a point tells its history, files stand by
themselves."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.dashboards.browser.conftest import Site
from tests.dashboards.seeded import alive
from tests.kit.browser import watching
from tests.kit.service import GIVEN, bearer

pytestmark = pytest.mark.servers

BOOT = f"/classes/{quote('GET /boot', safe='')}"
ARMED_SECONDS = 60.0
WATCHED_MS = 60_000

TRIED: dict[str, Any] = {
    "request_class": "GET /boot",
    "hypothesis": ["error@api>http:GET:ratings/titles/*"],
    "kinds": ["error"],
    "treatment": 0.05,
    "control": 0.05,
    "members": 1000,
    "min_samples": 1000,
    "window": 600.0,
    "settle": 1.0,
    "follow": 0.0,
}
"""Comes to no end by itself while it is watched."""


def test_an_experiment_is_watched_and_called_off(browser: Browser, seeded_url: str) -> None:
    with alive(seeded_url) as url, watching(browser, url, role="operator") as visitor:
        experiment = armed(url)
        page = visitor.visit(f"/experiments/{experiment}")
        figures = page.locator("#figures")
        expect(figures).to_contain_text("It is running.")
        page.evaluate("window.same = true")

        devices = figures.get_by_role("row", name=re.compile("^treatment")).get_by_role("cell")
        before = devices.first.inner_text()
        expect(devices.first).not_to_have_text(before, timeout=WATCHED_MS)
        expect(page.locator("[data-latest]")).to_contain_text(re.compile(r"After [1-9]"))
        assert page.evaluate("window.same"), "the page was not loaded anew for that"

        page.get_by_label("Disarm it: why?").fill("seen <enough>")
        page.get_by_role("button", name="Disarm now").click()
        why = "Called off by operator: seen <enough>"
        expect(figures).to_contain_text(why, timeout=WATCHED_MS)
        expect(figures).to_contain_text("It was called off.", timeout=WATCHED_MS)
        expect(page.get_by_label("Disarm it: why?")).to_have_count(0, timeout=WATCHED_MS)
        expect(page.get_by_role("region", name="Timeline")).to_contain_text("aborted")
        visitor.check()


def armed(url: str, **other: Any) -> str:
    """Begin an experiment, and wait until faults are injected for it. ``other``: than usual."""
    tried = {**TRIED, **other}
    headers = bearer(GIVEN["operator"])
    with httpx.Client(
        base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=20
    ) as api:
        assert api.post("/experiments", json=tried).status_code == 202
        ends = time.monotonic() + ARMED_SECONDS
        while time.monotonic() < ends:
            for each in api.get("/experiments?limit=5").json()["items"]:
                if (each["request_class"], each["state"]) == (tried["request_class"], "observing"):
                    return str(each["id"])
            time.sleep(0.2)
    raise AssertionError("nothing was armed")


def test_a_point_of_the_picture_tells_its_history(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, role="viewer") as visitor:
        page = visitor.visit(BOOT)
        page.wait_for_selector("[data-lineage].drawn")
        page.evaluate(
            """() => document.querySelector('[data-lineage]').lineage.nodes('.point')
                .filter(each => each.data('point').includes('layout')).emit('tap')"""
        )

        history = page.locator(".point")
        expect(history).to_contain_text("Its failure alone hurts.")
        expect(history).to_contain_text("hurt when it is refused")
        visitor.check()


def test_the_table_beside_the_picture_is_for_the_keyboard(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, role="viewer") as visitor:
        page = visitor.visit(BOOT)
        page.wait_for_selector("[data-lineage].drawn")
        page.locator("details.as-table > summary").focus()
        page.keyboard.press("Enter")
        page.get_by_role("link", name="GET layout/screens/*").focus()
        page.keyboard.press("Enter")
        page.wait_for_url(lambda to: urlsplit(to).path == "/point", wait_until="commit")
        expect(page.get_by_role("main")).to_contain_text("Its failure alone hurts.")
        visitor.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_finding_opens_from_a_disk(
    browser: Browser, site: Site, tmp_path: Path, scheme: Any
) -> None:
    file = tmp_path / "finding.html"
    path = f"{site.url}/api/v1/findings/{site.known.findings[-1]}/file"
    file.write_bytes(
        httpx.get(path, headers=bearer(GIVEN["viewer"]), trust_env=False, timeout=20).content
    )
    context = browser.new_context(color_scheme=scheme, offline=True)
    page, wrong = context.new_page(), list[str]()
    page.on("console", lambda message: wrong.append(message.text))
    page.on("request", lambda asked: wrong.append(asked.url) if asked.url[:5] != "file:" else None)

    page.goto(file.as_uri())

    expect(page.get_by_role("heading", level=1)).to_contain_text("when")
    expect(page.locator(".call.injected").first).to_be_visible()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(245, 246, 248)") is (scheme == "light")
    context.close()
    assert not wrong
