"""Every page in a real Chromium: for eyes, for fingers, for keys, for screen readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser, expect

from ldfi.dashboards.app import ROUTERS
from ldfi.experiments.cluster.tokens import Role
from tests.dashboards.browser.conftest import Site
from tests.dashboards.browser.pages import FILES, NO_PAGES, OPEN, PAGES, Where
from tests.kit import axe
from tests.kit.browser import NOTHING_STICKS_OUT, PHONE, WIDE, Scheme, Watched, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
EVERY: Mapping[str, Where] = {
    **OPEN,
    **PAGES,
    "every-finding": lambda _: "/findings?state=all",
    "paused-campaign": lambda known: f"/campaigns/{known.campaigns['player']}",
    "harmful-experiments": lambda _: "/experiments?verdict=harmful",
}


class Visitors:
    """One browser profile for each way of looking, logged in as an admin when first needed."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self._browser, self._site = browser, site
        self._stack, self._open = ExitStack(), dict[str, Watched]()

    def close(self) -> None:
        self._stack.close()

    def visit(self, name: str, scheme: Scheme = "light", phone: bool = False) -> Watched:
        """Somebody who looks at this page just now."""
        kind = f"{name in OPEN} {scheme} {phone}"
        if kind not in self._open:
            size = PHONE if phone else WIDE
            role: Role | None = None if name in OPEN else "admin"
            self._open[kind] = self._stack.enter_context(
                watching(self._browser, self._site.url, scheme, size, role)
            )
        visitor = self._open[kind]
        visitor.wrong.clear()
        visitor.visit(EVERY[name](self._site.known))
        return visitor


@pytest.fixture(scope="module")
def visitors(browser: Browser, site: Site) -> Iterator[Visitors]:
    found = Visitors(browser, site)
    yield found
    found.close()


def test_every_page_is_looked_at(site: Site) -> None:
    places = [*EVERY.values(), *FILES.values()]
    looked_at = {where(site.known).partition("?")[0] for where in places}
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and "GET" in (route.methods or ()):
                if route.path in NO_PAGES or route.path.startswith("/api/"):
                    continue
                assert any(route.path_regex.match(path) for path in looked_at), (
                    f"{route.path} is not in tests/dashboards/browser/pages.py"
                )


STICK_OUT = """() => {
    const page = document.documentElement.scrollWidth > innerWidth;
    const out = (each, within) => {
        const box = each.getBoundingClientRect();
        return box.width && box.right > within.right + 1;
    };
    const head = [...document.querySelectorAll('.find > *, .now > *, nav[aria-label="Pages"] a')]
        .filter(each => getComputedStyle(each).position !== 'absolute')
        .filter(each => !each.closest('nav'))
        .filter(each => out(each, each.parentElement.getBoundingClientRect()));
    return [...document.querySelectorAll('body *')]
        .filter(each => page && each.getBoundingClientRect().right > innerWidth + 1)
        .concat(head).map(each => each.outerHTML.slice(0, 120));
}"""
"""What is wider than the page, and what of the header is wider than its place."""


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", EVERY)
def test_opens_without_errors_fits_and_is_for_everyone(
    visitors: Visitors, axe_core: str, name: str, scheme: Scheme, phone: bool
) -> None:
    visitor = visitors.visit(name, scheme, phone)

    wide = visitor.page.evaluate(STICK_OUT)
    visitor.page.locator("main details:not(.menu)").evaluate_all(
        "all => all.forEach(each => each.open = true)"
    )

    assert not wide, f"{len(wide)} elements stick out, first {wide[0]}"
    assert visitor.page.evaluate(NOTHING_STICKS_OUT)
    assert not axe.grave_violations(visitor.page, axe_core)
    visitor.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_needs_nothing_but_itself(
    visitors: Visitors,
    browser: Browser,
    site: Site,
    axe_core: str,
    tmp_path: Path,
    name: str,
    scheme: Scheme,
) -> None:
    visitor = visitors.visit("now")
    got = visitor.page.request.get(f"{site.url}{FILES[name](site.known)}")
    assert "attachment" in got.headers["content-disposition"]
    (tmp_path / "file.html").write_bytes(got.body())

    with watching(browser, f"file://{tmp_path}", scheme) as reader:
        page = reader.visit("/file.html")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert not axe.grave_violations(page, axe_core)
        reader.check()


@pytest.fixture(scope="module")
def unscripted(browser: Browser, site: Site) -> Iterator[Watched]:
    with watching(browser, site.url, java_script_enabled=False, role="viewer") as visitor:
        yield visitor


@pytest.mark.parametrize("name", sorted(set(PAGES) - {"halt", "tokens", "new-campaign"}))
def test_reads_without_javascript_and_as_a_viewer(
    unscripted: Watched, site: Site, name: str
) -> None:
    unscripted.wrong.clear()
    page = unscripted.visit(EVERY[name](site.known))

    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert len(page.get_by_role("main").inner_text()) > 40
    unscripted.check()


def test_the_keyboard_reaches_the_content_and_halts(browser: Browser, site: Site) -> None:
    with watching(browser, site.url, role="operator") as visitor:
        page = visitor.visit("/")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name=re.compile("skip", re.IGNORECASE))).to_be_focused()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"

        reached = page.get_by_role("button", name="Hold to halt")
        for _ in range(40):
            page.keyboard.press("Shift+Tab")
            if reached.evaluate("each => each === document.activeElement"):
                break
        expect(reached).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url(re.compile(r"/halt\??$"))
        visitor.check()
