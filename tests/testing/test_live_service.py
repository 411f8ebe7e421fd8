"""The whole service over a socket, as a user's program meets it."""

from __future__ import annotations

import time

import pytest

from ldfi.testing.live_service import live_service
from ldfi.testing.world import Caller


def home(request: Caller) -> None:
    request.call("layout")


@pytest.mark.long
def test_a_campaign_is_run_over_the_api() -> None:
    settings = {"kinds": ["error"], "treatment": 0.3, "control": 0.3, "min_traffic": 50, "apart": 0}
    with live_service({"/home": home}) as service, service.client("operator") as client:
        started = client.post(
            "/api/v1/campaigns", json={**settings, "settle": 0.5, "follow": 0.0, "confirm": False}
        )
        assert started.status_code == 201, started.text
        deadline = time.monotonic() + 60
        found: list[dict[str, object]] = []
        while not found and time.monotonic() < deadline:
            time.sleep(0.2)
            found = client.get("/api/v1/findings").json()["items"]
    assert [each["faults"] for each in found] == [["error@layout"]]
    assert found[0]["request_class"] == "GET /home"


def test_every_role_has_a_token_of_its_own() -> None:
    with live_service() as service:
        assert len(set(service.tokens.values())) == len(service.tokens)
        with service.client("viewer") as viewer, service.client("admin") as admin:
            assert viewer.get("/api/v1/campaigns").status_code == 200
            assert viewer.post("/api/v1/halt", json={"reason": "no"}).status_code == 403
            assert admin.post("/api/v1/halt", json={"reason": "yes"}).status_code == 200
