"""A campaign on real processes that end when a dependency refuses.

The service, its SDK, its exporter and whoever starts it again are real; the edge and the clock of
the scheduler are the test's.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from urllib.parse import urlsplit

import httpx
import pytest

from ldfi.cli.ports import free_port
from ldfi.experiments.domain.settings import Limits, Settings
from ldfi.experiments.domain.traffic.observation import Outcome
from ldfi.experiments.domain.traffic.waiting_times import Waiting
from ldfi.experiments.scheduler.engine import Engine
from ldfi.experiments.store.database import Database
from ldfi.explore.external.environment import variables
from ldfi.explore.external.receiver import Receiver
from ldfi.explore.external.services import Service, Services
from ldfi.explore.external.stamp import SharedKeys
from ldfi.fit.protocol.context import ENTRY, encode
from ldfi.lineage.span import Span
from ldfi.testing.spans import span
from ldfi.testing.world import World

KEYS = SharedKeys("test:0123456789abcdef0123456789abcdef")
SHOP = (sys.executable, "-m", "tests.explore.external.shop")
SETTINGS = Settings(
    kinds=("error",),
    max_size=1,
    treatment=0.4,
    control=0.4,
    min_traffic=20,
    window=20.0,
    settle=0.5,
    follow=0.0,
    rechecks=0,
)


class Street(World):
    """The edge ``web`` asks the service at ``page`` over HTTP, for as many devices as there are."""

    page = store = ""
    arrived: SimpleQueue[list[Span]]

    def _request(self, path: str) -> None:
        number, now = next(self._ids), self.now
        device, trace = f"d{number}", f"{number:032x}"
        root, call = f"{number:016x}", f"{2**60 + number:016x}"
        claimed = self.edges[0].claim(path, device, now)
        headers = {"traceparent": f"00-{trace}-{call}-01"}
        shown = {}
        if claimed:
            rule, arm, _ = claimed
            context = encode(KEYS.keys, rule.experiment, arm, int(now) + 60, rule.faults)
            headers["baggage"] = f"{ENTRY}={context}"
            shown = {"experiment": rule.experiment, "arm": arm}
        begun = time.time_ns()
        try:
            answer = httpx.get(self.page + path, headers=headers, timeout=5, trust_env=False)
            good, told = answer.is_success, {"status": str(answer.status_code)}
        except httpx.HTTPError as error:
            good, told = False, {"error_type": type(error).__name__}
        at, url = (begun, time.time_ns()), {"method": "GET", "url": f"http://web{path}"}
        point = "web>http:GET:page/page"
        self.engine.receive_spans(
            [
                span(root, None, "server", "web", not good, at, trace, **url, **shown),
                span(call, root, "client", "web", not good, at, trace, point=point, **told),
            ],
            now,
        )
        self.engine.receive_outcomes([Outcome(trace, device, "", good, duration=0.1)], now)

    def live(self) -> None:
        """Let a moment of real time go by."""
        self.now = time.time()
        while not self.arrived.empty():
            self.engine.receive_spans(self.arrived.get(), self.now)
        self.step(requests=1, seconds=0.0)
        time.sleep(0.02)  # between two requests


@pytest.fixture
def street(tmp_path: Path) -> Iterator[Street]:
    arrived = SimpleQueue[list[Span]]()
    receiver = Receiver("127.0.0.1:0", KEYS.token, lambda spans: arrived.put(list(spans)))
    services = Services(variables(KEYS, f"http://{receiver.address}"), tmp_path)
    store = Service("store", (*SHOP, "store"), free_port(), "/health")
    mortal = {"STORE": store.url, "SHOP": "mortal", "DEATHS": str(tmp_path / "deaths")}
    page = Service("page", (*SHOP, "page"), free_port(), "/health", mortal)
    db = Database("sqlite://")
    try:
        services.start(store, page)
        limits = Limits(protected_points=("web>*",))
        engine = Engine(db, now=time.time(), waiting=Waiting.of(0.4, 2.0), limits=limits)
        world = Street(db, {"/page": lambda _caller: None}, engine=engine)
        world.page, world.store, world.arrived = page.url, store.url, arrived
        yield world
    finally:
        services.close()
        receiver.close()
        db.close()


def test_a_process_that_ends_is_one_suspicion_and_one_death(street: Street, tmp_path: Path) -> None:
    campaign = street.start(SETTINGS)
    until = time.monotonic() + 120
    while campaign.live() and time.monotonic() < until:
        street.live()

    assert not campaign.live(), campaign.waiting
    address = urlsplit(street.store).netloc
    assert street.findings() == {(f"refused@page>http:GET:{address}/price/*",): "killed"}
    assert len((tmp_path / "deaths").read_text(encoding="utf-8").splitlines()) == 1
