"""A lineage of 300 points: drawn soon, and still to be read."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page

from tests.dashboards.browser import large
from tests.dashboards.seeded import alive
from tests.kit.browser import Watched, watching
from tests.kit.service import GIVEN

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
DRAWN = "[data-lineage].drawn"
WITHIN_MS = 8_000
"""Quiet machines need less than a quarter of it."""

READABLE = 0.45
"""Zoom below which letters of 12 pixels cannot be read."""


@pytest.fixture(scope="module")
def visitor(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    url = f"sqlite:///{tmp_path_factory.mktemp('large') / 'ldfi.sqlite3'}"
    large.store(url)
    with (
        alive(url, {large.PATH: large.program()}, requests=0) as root,
        watching(browser, root) as found,
    ):
        found.log_in(GIVEN["viewer"])
        yield found


CLIPPED = """drawn => {
    const cy = document.querySelector(drawn).lineage;
    return cy.nodes().filter(node => {
        const box = node.renderedBoundingBox({includeLabels: false});
        return box.x1 < 0 || box.y1 < 0 || box.x2 > cy.width() || box.y2 > cy.height();
    }).map(node => node.id());
}"""
"""What is not wholly in sight."""

IN_SIGHT = """drawn => {
    const cy = document.querySelector(drawn).lineage, all = cy.extent();
    return cy.nodes('.point').filter(node => !node.hasClass('pale') && node.position().x > all.x1
        && node.position().x < all.x2 && node.position().y > all.y1 && node.position().y < all.y2)
        .map(node => node.data('point'));
}"""


def drawn_in(page: Page) -> float:
    """Milliseconds, of the last drawing."""
    page.wait_for_selector(DRAWN)
    return float(page.locator(DRAWN).get_attribute("data-drawn-in") or "nan")


def seen(page: Page, selector: str) -> int:
    """How many nodes of the graph match."""
    count: int = page.evaluate(
        f"document.querySelector('{DRAWN}').lineage.nodes('{selector}').length"
    )
    return count


def test_opens_with_its_services_closed_and_can_be_opened(visitor: Watched) -> None:
    page = visitor.visit(f"/classes/{quote(large.CLASS, safe='')}")

    assert drawn_in(page) < WITHIN_MS
    assert seen(page, ".closed") == large.SERVICES + 1  # and the edge
    assert seen(page, ".point") == 0
    assert page.evaluate(f"document.querySelector('{DRAWN}').lineage.zoom()") >= READABLE
    assert not page.evaluate(CLIPPED, DRAWN), "it opens fitted"

    page.get_by_role("button", name="Open all services").click()
    assert drawn_in(page) < WITHIN_MS
    assert seen(page, ".point") >= large.POINTS
    assert page.evaluate(f"document.querySelector('{DRAWN}').lineage.zoom()") >= READABLE
    visitor.check()


def test_a_point_is_found_by_what_it_is_called(visitor: Watched) -> None:
    page = visitor.visit(f"/classes/{quote(large.CLASS, safe='')}")
    page.wait_for_selector(DRAWN)
    assert seen(page, ".point") == 0

    page.get_by_label("Find a point").fill("service-17>db:SELECT:STORE-3")
    page.wait_for_function("() => document.querySelector('[data-found]').textContent !== ''")
    assert page.locator("[data-found]").inner_text() == f"1 of {large.POINTS} points"
    assert page.evaluate(IN_SIGHT, DRAWN) == ["service-17>db:SELECT:store-3/rows"]
    assert page.locator("tr[data-point]:not([hidden])").count() == 1

    page.get_by_label("Find a point").fill("")
    assert page.locator("tr[data-point]:not([hidden])").count() == large.POINTS
    visitor.check()


def test_no_two_points_lie_on_each_other(visitor: Watched) -> None:
    page = visitor.visit(f"/classes/{quote(large.CLASS, safe='')}")
    page.get_by_role("button", name="Open all services").click()
    page.wait_for_selector(DRAWN)

    overlapping = page.evaluate(
        """drawn => {
            const boxes = document.querySelector(drawn).lineage.nodes('.point')
                .map(each => [each.id(), each.boundingBox({includeLabels: false})]);
            return boxes.flatMap(([one, a], at) => boxes.slice(at + 1)
                .filter(([, b]) => a.x1 < b.x2 - 2 && b.x1 < a.x2 - 2
                    && a.y1 < b.y2 - 2 && b.y1 < a.y2 - 2)
                .map(([other]) => `${one} ${other}`));
        }""",
        DRAWN,
    )
    assert not overlapping, f"{len(overlapping)} pairs, {overlapping[:3]}"


def test_everything_is_in_the_table_too(visitor: Watched) -> None:
    page = visitor.visit(f"/classes/{quote(large.CLASS, safe='')}")

    assert page.locator("details.as-table tbody tr:not(.group)").count() >= large.POINTS
