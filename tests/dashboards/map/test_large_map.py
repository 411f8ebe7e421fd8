"""The map of more services than a screen holds: it opens folded, and unfolds."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path

import pytest

from ldfi.dashboards.map.services import FOLDED
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import FindingRow
from tests.dashboards.browser import large
from tests.dashboards.browsing import Browser, site, text_of
from tests.kit.service import service

SERVICES = 90
FAULT = "error@service-00>http:GET:service-01/parts/*"


def drawn(browser: Browser, path: str) -> int:
    """How many services the picture shows."""
    return len(re.findall(r'<a class="service ', browser.get(path).text))


@pytest.mark.parametrize("known", [True, False], ids=["one-hurts", "nothing-known"])
def test_above_sixty_services_it_opens_on_what_hurts_and_unfolds(
    tmp_path: Path, known: bool
) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    large.store(url, 40, SERVICES, 2 * SERVICES)
    if known:
        database = Database(url)
        with database.change(time.time()) as change:
            row = FindingRow(id=secrets.token_hex(6), request_class=large.CLASS, faults=[FAULT])
            row.state, row.found_at, row.campaign_id, row.experiment_id = "open", 1.0, "c", "e"
            change.session.add(row)
        database.close()
    with site(service(url)) as here:
        viewer = here.logged_in("viewer")
        said = text_of(viewer.get("/map"))
        every = drawn(viewer, "/map?show=all")
        folded = drawn(viewer, "/map")
    assert every > SERVICES > FOLDED
    assert f"{every + 1} services: " in said  # and where requests come in
    if known:
        assert 0 < folded < 10
        assert f"{every - folded} that do not hurt are not drawn. Draw all" in said
    else:
        assert folded == every, "nothing hurts, so there is nothing to fold down to"
