"""The page that ``ldfi analyze --html`` writes, in a real Chromium: on the phone of whoever it was
forwarded to nothing sticks out, nothing is cut, and the picture can be read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser

from ldfi.analysis.analysis import analyze
from ldfi.analysis.html import page
from tests.analysis.spans import analysed, asked, entered
from tests.kit import axe
from tests.kit.browser import PHONE, WIDE, Scheme, chromium, watching

pytestmark = [pytest.mark.servers, pytest.mark.timeout(400)]  # browsers are slow on a busy machine
ROOT: Final = Path(__file__).parents[2]
PAPERS: Final = {
    "sample": ROOT / "examples" / "traces",
    "everything": ROOT / "tests" / "data",
    "long": None,
}
SMALLEST: Final = (320, 568)
"""There all has to fit, too, though the picture with it is small."""

LEAST_LETTERS: Final = 10.0
"""Pixels of letters in the picture, below which nobody reads them."""

STICKS_OUT: Final = """() => [...document.querySelectorAll("body *")]
    .filter(each => each.getClientRects().length)
    .filter(each => {
        const box = each.getBoundingClientRect();
        const scrolls = getComputedStyle(each).overflowX !== "visible";
        const cut = scrolls && each.scrollWidth > each.clientWidth;
        return box.right > innerWidth + 0.5 || box.left < -0.5 || cut;
    })
    .map(each => each.outerHTML.slice(0, 120))"""
SIDEWAYS: Final = "document.documentElement.scrollWidth - innerWidth"
LETTERS: Final = """() => [...document.querySelectorAll("svg text")]
    .filter(each => each.getClientRects().length)
    .map(each => {
        const picture = each.ownerSVGElement;
        const scale = picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
        return scale * parseFloat(getComputedStyle(each).fontSize);
    })"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a page of each."""
    folder = tmp_path_factory.mktemp("papers")
    long = "a-service-whose-name-is-longer-than-a-phone-is-wide." * 3
    requests = [[entered(f"/{long}", service=long), asked(f"to-{long}")]] * 6
    requests += [[entered(f"/{long}", service=long, failed=True), asked(f"to-{long}", failed=True)]]
    for name, traces in PAPERS.items():
        if traces is None:
            (folder / "traces").mkdir()
        found = analysed(folder / "traces", requests) if traces is None else analyze([traces])
        (folder / f"{name}.html").write_text(page(found, long), encoding="utf-8")
    return folder


@pytest.mark.parametrize("size", [SMALLEST, PHONE, WIDE], ids=lambda size: str(size[0]))
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAPERS)
def test_it_fits_and_can_be_read(
    browser: Browser, papers: Path, name: str, scheme: Scheme, size: tuple[int, int]
) -> None:
    with watching(browser, papers.as_uri(), scheme, size) as reader:
        shown = reader.visit(f"/{name}.html")
        for each in shown.locator("details").all():
            each.evaluate("each => { each.open = true; }")

        assert shown.evaluate(SIDEWAYS) <= 0
        assert shown.evaluate(STICKS_OUT) == []
        letters = shown.evaluate(LETTERS)
        assert letters
        assert size == SMALLEST or min(letters) >= LEAST_LETTERS
        assert not axe.grave_violations(shown, axe.source())
        reader.check()
