"""``python -m benchmarks.pages [--json]``: how soon each page shows something.

``ldfi serve`` in a process of its own over SQLite with 10,000 experiments on record; Chromium on
the same machine. *First contentful paint* is the browser's own measure, from the start of the
navigation until it first draws anything of the page (https://www.w3.org/TR/paint-timing/): the
median of several visits with a warm cache, as for somebody who moves from page to page.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.outcome import Row, at_most, say
from ldfi.cli.demo import wait_until_ready
from ldfi.cli.ports import free_port
from ldfi.cli.processes import Processes
from tests.dashboards.browser.pages import PAGES
from tests.dashboards.seeded import Seeded, crowd, seed
from tests.kit.browser import DESK, PHONE, Watched, chromium, painted, watching

EXPERIMENTS, VISITS, PAINT_MS = 10_000, 7, 200.0
TOKEN = "admin-of-the-benchmark"  # noqa: S105 - it opens nothing but this


@contextmanager
def served() -> Iterator[tuple[str, Seeded]]:
    """Serve the service over a full database."""
    with tempfile.TemporaryDirectory() as folder, Processes(Path(folder)) as processes:
        database, port = f"sqlite:///{folder}/ldfi.sqlite3", free_port()
        known = seed(database)
        crowd(database, EXPERIMENTS)
        serve = [sys.executable, "-m", "ldfi.cli", "serve", "--port", str(port)]
        tokens = {"LDFI_TOKENS": f"admin:{TOKEN}", "LDFI_GRPC_PORT": "off"}
        processes.start("ldfi", [*serve, "--database", database], tokens)
        url = f"http://127.0.0.1:{port}"
        wait_until_ready(url, processes)
        yield url, known


def measured(visitor: Watched, page: str, path: str, visits: int) -> Row:
    """Measure one page; the first visit fills the browser's cache and does not count."""
    painted(visitor, path)
    paints = [painted(visitor, path) for _ in range(visits)]
    return {
        "page": page,
        "first contentful paint, ms": statistics.median(paints),
        "slowest, ms": max(paints),
    }


def main() -> int:
    """Measure every page in four modes and say how soon the slowest one shows something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--visits", type=int, default=VISITS)
    given = parser.parse_args()
    rows: list[Row] = []
    with served() as (url, known), chromium() as browser:
        for size in (DESK, PHONE):
            for scheme in ("light", "dark"):
                with watching(browser, url, scheme, size) as visitor:
                    visitor.log_in(TOKEN)
                    mode = f"{scheme}, {size[0]} px"
                    rows += [
                        measured(visitor, f"{name} ({mode})", where(known), given.visits)
                        for name, where in PAGES.items()
                    ]
                    visitor.check()
    slowest = max(float(str(row["first contentful paint, ms"])) for row in rows)
    targets = {"first contentful paint of the slowest page, ms": at_most(slowest, PAINT_MS)}
    return 0 if say({"pages": rows}, targets, as_json=given.json) else 1


if __name__ == "__main__":
    sys.exit(main())
