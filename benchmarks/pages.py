"""``python -m benchmarks.pages [--json]``: how soon pages show something, and large lineages.

``ldfi serve`` in a process of its own over SQLite with 10,000 experiments on record; Chromium on
the same machine. *First contentful paint* is the browser's own measure, from the start of the
navigation until it first draws anything of the page (https://www.w3.org/TR/paint-timing/): the
median of several visits with a warm cache, as for somebody who moves from page to page. *Drawing*
is the time in which the script lays out and draws a lineage of 300 points: as it opens, with its
services closed, and with all of them open.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.outcome import Row, Target, at_most, say
from ldfi.cli.demo import wait_until_ready
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from tests.dashboards.browser import large
from tests.dashboards.browser.pages import OPEN, PAGES
from tests.dashboards.seeded import Seeded, crowd, seed
from tests.kit.browser import Watched, chromium, watching

EXPERIMENTS = 10_000
VISITS = 7
PAINT_MS, DRAW_MS = 200.0, 2_000.0
TOKEN = "admin-of-the-benchmark"  # noqa: S105 - it opens nothing but this

PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length > 0"
MEASURE = """() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0].startTime,
    answer: performance.getEntriesByType('navigation')[0].responseEnd,
    kilobytes: performance.getEntriesByType('navigation')[0].decodedBodySize / 1024,
})"""


def main() -> int:
    """Measure and say."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--visits", type=int, default=VISITS)
    given = parser.parse_args()
    with served() as (url, known), chromium() as browser, watching(browser, url) as visitor:
        visitor.log_in(TOKEN)
        places = {name: where(known) for name, where in PAGES.items() if name not in OPEN}
        paints = [painted(visitor, name, path, given.visits) for name, path in places.items()]
        drawings = [drawn(visitor) for _ in range(given.visits)]
        visitor.check()
    return 0 if say(*outcome(paints, drawings), as_json=given.json) else 1


@contextmanager
def served() -> Iterator[tuple[str, Seeded]]:
    """Serve the service over a full database."""
    with tempfile.TemporaryDirectory() as folder, Processes(Path(folder)) as processes:
        database = f"sqlite:///{folder}/ldfi.sqlite3"
        known = seed(database)
        large.store(database)
        crowd(database, EXPERIMENTS)
        port = free_port()
        serve = [sys.executable, "-m", "ldfi.cli", "serve", "--port", str(port)]
        environment = {"LDFI_TOKENS": f"admin:{TOKEN}", "LDFI_GRPC_PORT": "off"}
        processes.start("ldfi", [*serve, "--database", database], environment)
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, processes)
        yield url, known


def painted(visitor: Watched, name: str, path: str, visits: int) -> Row:
    """Measure one page, again and again; the first visit fills the browser's cache and does not
    count."""
    visitor.visit(path)
    seen: list[dict[str, float]] = []
    for _ in range(visits):
        page = visitor.visit(path)
        page.wait_for_function(PAINTED)
        seen.append(page.evaluate(MEASURE))
    return {
        "page": name,
        "first_contentful_paint_ms": statistics.median(each["paint"] for each in seen),
        "slowest_ms": max(each["paint"] for each in seen),
        "answer_complete_ms": statistics.median(each["answer"] for each in seen),
        "kilobytes": seen[-1]["kilobytes"],
    }


def drawn(visitor: Watched) -> Row:
    """Measure the large lineage, closed and open."""
    page = visitor.visit(f"/classes/{quote(large.CLASS, safe='')}")
    graph = page.locator("[data-lineage].drawn")
    graph.wait_for()
    closed = float(graph.get_attribute("data-drawn-in") or "nan")
    page.get_by_role("button", name="Open all services").click()
    opened = float(graph.get_attribute("data-drawn-in") or "nan")
    return {"points": large.POINTS, "closed_ms": closed, "open_ms": opened}


def outcome(
    paints: list[Row], drawings: list[Row]
) -> tuple[dict[str, list[Row]], dict[str, Target]]:
    """Make the tables and hold them against the targets."""
    slowest: Any = max(paints, key=_paint)
    opened = statistics.median(float(str(each["open_ms"])) for each in drawings)
    return {"pages": paints, "lineage": drawings}, {
        f"first contentful paint of the slowest page ({slowest['page']}), ms": at_most(
            _paint(slowest), PAINT_MS
        ),
        "drawing a lineage of 300 points, all open, ms": at_most(opened, DRAW_MS),
    }


def _paint(row: Row) -> float:
    return float(str(row["first_contentful_paint_ms"]))


if __name__ == "__main__":
    sys.exit(main())
