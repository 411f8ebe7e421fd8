"""``python -m tests.dashboards.browser.screenshots FOLDER``: every page, light and dark, as PNGs.

Of the service over a database with a past (:mod:`tests.dashboards.seeded`), on which a campaign has
just been started, so that there is something to see on every page. ``make screenshots`` runs it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Final, get_args

import httpx
from PIL import Image
from playwright.sync_api import Browser

from tests.dashboards.browser.pages import OPEN, PAGES
from tests.dashboards.seeded import QUICK, Seeded, alive, seed
from tests.kit.browser import Scheme, chromium, watching
from tests.kit.service import GIVEN, bearer

SIZE: Final = (1280, 900)
TALLEST: Final = 1500
"""Pixels of a page that are shown; nobody scrolls through a picture."""

MOST_BYTES: Final = 150_000
ZONE: Final = "Europe/Berlin"
PATIENCE: Final = 60.0

Api = Callable[[str], Any]


def main() -> None:
    """Write all pictures."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.dashboards.browser.screenshots FOLDER")
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with busy() as (url, where), chromium() as browser:
        for scheme in get_args(Scheme):
            _take(browser, url, scheme, where, folder)


@contextmanager
def busy() -> Iterator[tuple[str, Mapping[str, str]]]:
    """A service in the middle of a campaign: its address, and where each page is."""
    with tempfile.TemporaryDirectory() as folder:
        database = f"sqlite:///{folder}/ldfi.sqlite3"
        known = seed(database)
        with (
            alive(database) as url,
            httpx.Client(
                base_url=f"{url}/api/v1",
                headers=bearer(GIVEN["operator"]),
                trust_env=False,
                timeout=20,
            ) as client,
        ):
            slow = {"window": 600.0, "delta": 0.02, "min_samples": 60, "rechecks": 20}
            body = {"name": "tonight", **QUICK, **slow, "max_size": 3, "min_traffic": 30}
            started = client.post("/campaigns", json=body).raise_for_status().json()["id"]
            yield url, _places(known, started, lambda path: client.get(path).json())


def _places(known: Seeded, started: str, api: Api) -> Mapping[str, str]:
    """Every page, at something worth seeing."""
    end = time.monotonic() + PATIENCE
    while not any(e["counts"]["treatment"]["devices"] for e in _observed(api)):
        assert time.monotonic() < end, "nothing was armed"
        time.sleep(0.5)
    found = api("/findings")["items"]
    telling = max(found, key=lambda each: len(each["faults"]))
    return {
        **{name: where(known) for name, where in {**OPEN, **PAGES}.items()},
        "campaign": f"/campaigns/{started}",
        "experiment": f"/experiments/{telling['experiment_id']}",
        "finding": f"/findings/{telling['id']}",
    }


def _observed(api: Api) -> list[Any]:
    return [e for e in api("/experiments?limit=20")["items"] if e["state"] == "observing"]


def _take(
    browser: Browser, url: str, scheme: Scheme, where: Mapping[str, str], folder: Path
) -> None:
    with watching(browser, url, scheme, SIZE, timezone_id=ZONE, locale="en-GB") as visitor:
        page = visitor.visit(where["login"])
        _save(page.screenshot(), folder / f"login-{scheme}.png")
        visitor.log_in(GIVEN["admin"])
        for name, path in where.items():
            if name in OPEN:
                continue
            page = visitor.visit(path)
            page.wait_for_timeout(700)  # graphs are drawn, live figures have come
            height = min(TALLEST, page.evaluate("document.documentElement.scrollHeight"))
            page.set_viewport_size({"width": SIZE[0], "height": max(SIZE[1], height)})
            file = folder / f"{name}-{scheme}.png"
            _save(page.screenshot(animations="disabled"), file)
            page.set_viewport_size({"width": SIZE[0], "height": SIZE[1]})
        visitor.check()


def _save(png: bytes, file: Path) -> None:
    """With 128 colours, which no eye can tell from all of them, it is a third as large."""
    picture = Image.open(BytesIO(png)).convert("RGB")
    picture.quantize(128, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size <= MOST_BYTES, f"{file} has {file.stat().st_size} bytes"


if __name__ == "__main__":
    main()
