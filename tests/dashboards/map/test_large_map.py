"""The map of more services than a screen holds: it opens folded, and unfolds."""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path

import pytest

from ldfi.dashboards.map.services import FOLDED, MOST_HURTING
from ldfi.experiments.store import Database
from ldfi.experiments.store.schema import FindingRow
from tests.dashboards.browser import large
from tests.dashboards.browsing import Browser, site, text_of
from tests.kit.service import service

SERVICES = 90


def drawn(browser: Browser, path: str) -> int:
    """How many services the picture shows."""
    return len(re.findall(r'<a class="service ', browser.get(path).text))


@pytest.mark.parametrize("known", [1, 40, 0], ids=["one-hurts", "many-hurt", "nothing-known"])
def test_of_many_services_it_opens_on_what_hurts_most_and_unfolds(
    tmp_path: Path, known: int
) -> None:
    url = f"sqlite:///{tmp_path / 'x.sqlite3'}"
    large.store(url, 40, SERVICES, 2 * SERVICES)
    database = Database(url)
    with database.change(time.time()) as change:
        for number in range(1, known + 1):
            above = f"service-{(number - 1) // 2:02}"
            fault = f"error@{above}>http:GET:service-{number:02}/parts/*"
            row = FindingRow(id=secrets.token_hex(6), request_class=large.CLASS, faults=[fault])
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
    if known > MOST_HURTING:
        assert MOST_HURTING <= folded < 2 * MOST_HURTING
        left = f"{known - MOST_HURTING} more hurt, and of all services {every - folded} are not"
        assert f"The gravest are drawn: {left} drawn. Draw all" in said
    elif known:
        assert 0 < folded < 10
        assert f"{every - folded} that do not hurt are not drawn. Draw all" in said
    else:
        assert folded == every, "nothing hurts, so there is nothing to fold down to"
