"""What holds for every page and every form: who may, did they mean it, and what confines it."""

from __future__ import annotations

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import func, select
from starlette.routing import Route

from ldfi.dashboards.app import ROUTERS
from ldfi.dashboards.csp import HEADERS
from ldfi.dashboards.route import PageRoute
from ldfi.experiments.cluster.tokens import Role
from ldfi.experiments.store.schema import AuditRow
from tests.dashboards.browsing import Browser, Markup, Site
from tests.dashboards.seeded import Seeded

PEOPLE: tuple[Role, ...] = ("viewer", "operator", "admin")
LOOK: set[Role] = {"viewer", "operator", "admin"}
ACT: set[Role] = {"operator", "admin"}
RULE: set[Role] = {"admin"}

ALLOWED: dict[tuple[str, str], set[Role]] = {
    ("GET", "/"): LOOK,
    ("GET", "/live"): LOOK,
    ("GET", "/now"): LOOK,
    ("GET", "/was-it-us"): LOOK,
    ("GET", "/campaigns"): LOOK,
    ("GET", "/campaigns/{campaign_id}"): LOOK,
    ("GET", "/calendar"): LOOK,
    ("GET", "/map"): LOOK,
    ("GET", "/what-if"): LOOK,
    ("GET", "/maintenance"): LOOK,
    ("GET", "/audit"): LOOK,
    ("GET", "/findings"): LOOK,
    ("GET", "/findings/{finding_id}"): LOOK,
    ("GET", "/findings/{finding_id}/file"): LOOK,
    ("GET", "/classes"): LOOK,
    ("GET", "/classes/{name:path}"): LOOK,
    ("GET", "/point"): LOOK,
    ("GET", "/experiments"): LOOK,
    ("GET", "/experiments/{experiment_id}"): LOOK,
    ("GET", "/experiments/{experiment_id}/now"): LOOK,
    ("GET", "/certificates"): LOOK,
    ("GET", "/certificates/{campaign_id}"): LOOK,
    ("GET", "/certificates/{campaign_id}/file"): LOOK,
    ("GET", "/replays"): LOOK,
    ("GET", "/replays/{replay_id}"): LOOK,
    ("GET", "/campaigns/new"): ACT,
    ("GET", "/search"): LOOK,
    ("GET", "/search/found"): LOOK,
    ("GET", "/halt"): ACT,
    ("POST", "/halt"): ACT,
    ("POST", "/resume"): ACT,
    ("POST", "/campaigns"): ACT,
    ("POST", "/campaigns/plan"): ACT,
    ("POST", "/campaigns/{campaign_id}/pause"): ACT,
    ("POST", "/campaigns/{campaign_id}/resume"): ACT,
    ("POST", "/campaigns/{campaign_id}/stop"): ACT,
    ("POST", "/campaigns/{campaign_id}/release"): ACT,
    ("POST", "/maintenance"): ACT,
    ("POST", "/maintenance/{window_id}/close"): ACT,
    ("POST", "/findings/{finding_id}/acknowledge"): ACT,
    ("POST", "/findings/{finding_id}/verify"): ACT,
    ("POST", "/experiments/{experiment_id}/approve"): ACT,
    ("POST", "/experiments/{experiment_id}/reject"): ACT,
    ("POST", "/experiments/{experiment_id}/abort"): ACT,
    ("GET", "/tokens"): RULE,
    ("POST", "/tokens"): RULE,
    ("POST", "/tokens/{token_id}/revoke"): RULE,
}
OPEN = {("GET", "/login"), ("POST", "/login"), ("POST", "/logout")}
"""Whoever is not logged in may ask for these."""
FRAGMENTS = {
    ("GET", "/live"),
    ("GET", "/now"),
    ("GET", "/search/found"),
    ("GET", "/experiments/{experiment_id}/now"),
}
FILES = {("GET", "/findings/{finding_id}/file"), ("GET", "/certificates/{campaign_id}/file")}
"""To be kept and sent around, so everything they need is in them."""


@pytest.fixture(scope="module")
def people(reading: Site) -> dict[Role, Browser]:
    return {role: reading.logged_in(role) for role in PEOPLE}


def pages() -> dict[tuple[str, str], Route]:
    """Every page and form, the other helpers' included."""
    return {
        (method, route.path): route
        for router in ROUTERS
        for route in router.routes
        if isinstance(route, PageRoute)
        for method in route.methods or ()
    }


def filled(path: str, seeded: Seeded) -> str:
    """The path, about something that is there."""
    return (
        path.replace("{campaign_id}", seeded.campaigns["nightly"])
        .replace("{finding_id}", seeded.findings[0])
        .replace("{experiment_id}", seeded.experiments[0])
        .replace("{name:path}", "GET%20%2Fboot")
        .replace("{replay_id}", seeded.replays[0])
        .replace("{token_id}", "no-such-token")
        .replace("{window_id}", "no-such-window")
    )


def audited(app: FastAPI) -> int:
    """How many changes are on record."""
    with app.state.database.read() as session:
        return session.scalar(select(func.count()).select_from(AuditRow)) or 0


def test_the_table_of_who_may_has_every_page() -> None:
    assert set(pages()) == set(ALLOWED) | OPEN


@pytest.mark.parametrize(("method", "path"), sorted(ALLOWED))
def test_strangers_get_nowhere(reading: Site, seeded: Seeded, method: str, path: str) -> None:
    before = audited(reading.app)
    response = reading.stranger().client.request(method, filled(path, seeded))
    assert response.status_code == 303
    assert response.headers["location"].startswith("/login")
    assert audited(reading.app) == before


@pytest.mark.parametrize(("method", "path"), sorted(set(ALLOWED) - {("GET", "/live")}))
def test_each_role_may_what_it_may(
    people: dict[Role, Browser], reading: Site, seeded: Seeded, method: str, path: str
) -> None:
    """A form is sent without its token here, so nobody changes anything: 403 says which reason."""
    before = audited(reading.app)
    for role, browser in people.items():
        response = browser.client.request(method, filled(path, seeded))
        if role not in ALLOWED[method, path]:
            assert response.status_code == 403, (role, path)
            assert "needs the role" in response.text
        elif method == "POST":
            assert response.status_code == 403
            assert "out of date" in response.text
        else:
            assert response.status_code in {200, 204, 308, 422}, (role, path, response.text)
    assert audited(reading.app) == before


@pytest.mark.parametrize("path", sorted({path for method, path in pages() if method == "POST"}))
def test_forms_of_other_sites_and_sessions_are_refused(
    reading: Site, people: dict[Role, Browser], seeded: Seeded, path: str
) -> None:
    admin, before = people["admin"], audited(reading.app)
    to = filled(path, seeded)
    another = people["operator"].csrf("/")
    own = admin.csrf("/")
    fields = {"reason": "because", "name": "x", "role": "viewer", "hours": "1"}
    attempts = [
        admin.client.post(to, data=fields),
        admin.client.post(to, data={**fields, "csrf": ""}),
        admin.client.post(to, data={**fields, "csrf": "é"}),
        admin.client.post(to, data={**fields, "csrf": another}),
        admin.client.post(to, headers={"x-csrf-token": another}, data=fields),
        admin.client.post(to, data={**fields, "csrf": own}, headers=_FROM_ELSEWHERE),
        admin.client.post(to, data={**fields, "csrf": own}, headers=_FROM_A_NEIGHBOUR),
    ]
    assert [attempt.status_code for attempt in attempts] == [403] * len(attempts)
    assert audited(reading.app) == before


_FROM_ELSEWHERE = {"sec-fetch-site": "cross-site"}
_FROM_A_NEIGHBOUR = {"sec-fetch-site": "same-site"}


def test_a_form_is_read_as_forms_are_sent_and_as_nothing_else(people: dict[Role, Browser]) -> None:
    operator = people["operator"]
    header = {"x-csrf-token": operator.csrf("/")}
    as_json = operator.client.post("/halt", json={"reason": "x"}, headers=header)
    garbage = operator.client.post(
        "/halt",
        content=b"reason=%FF%FE",
        headers={**header, "content-type": "application/x-www-form-urlencoded"},
    )
    huge = operator.client.post("/halt", data={"reason": "x" * 2_000_000}, headers=header)
    codes = [response.status_code for response in (as_json, garbage, huge)]
    assert codes == [415, 422, 413]


@pytest.mark.parametrize(
    ("method", "path"),
    sorted(key for key in ALLOWED if key[0] == "GET" and key not in FRAGMENTS | FILES),
)
def test_every_page_is_confined_and_needs_nothing_from_elsewhere(
    people: dict[Role, Browser], seeded: Seeded, method: str, path: str
) -> None:
    response = people["admin"].get(filled(path, seeded))
    check_confined(response)
    page = Markup(response.text)
    for tag, attributes in page.tags:
        assert tag != "style"
        assert "style" not in attributes, (tag, attributes)
        assert not [name for name in attributes if name.startswith(("on", "hx-on"))]
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            to = attributes.get(name) or "/"
            assert to[0] in "/#?" and not to.startswith("//"), (tag, attributes)
    assert all(script.get("src") or _is_data(script) for script in page.every("script"))


def _is_data(script: dict[str, str | None]) -> bool:
    """A block of JSON is no script, and the policy lets it be."""
    return script.get("type") == "application/json"


def check_confined(response: httpx.Response) -> None:
    """It carries every header of the policy, and is kept nowhere."""
    for name, value in HEADERS.items():
        assert response.headers[name] == value
    assert response.headers["cache-control"] == "no-store"


def test_the_policy_allows_nothing_inline_and_nobody_else() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert {source for each in policy.split("; ") for source in each.split()[1:]} == {
        "'none'",
        "'self'",
    }


def test_errors_redirects_and_the_login_are_confined_too(
    reading: Site, people: dict[Role, Browser]
) -> None:
    viewer = people["viewer"]
    missing = viewer.get("/campaigns/no-such-campaign")
    assert missing.status_code == 404
    assert "There is no campaign" in missing.text
    for response in (
        missing,
        viewer.get("/tokens"),
        viewer.get("/audit?nonsense=1"),
        reading.stranger().get("/"),
        reading.stranger().get("/login"),
    ):
        check_confined(response)


def test_assets_are_named_by_their_content_and_kept_for_good(people: dict[Role, Browser]) -> None:
    viewer = people["viewer"]
    page = Markup(viewer.get("/").text)
    assets = [
        tag.get("src") or tag.get("href") for tag in page.every("script") + page.every("link")
    ]
    assert len(assets) >= 4
    for asset in assets:
        assert asset is not None
        response = viewer.get(asset)
        assert response.is_success, asset
        assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert response.headers["x-content-type-options"] == "nosniff"
        assert viewer.get(asset.partition("?")[0]).headers["cache-control"] == "no-cache"
    assert viewer.get("/static/../app.py").status_code == 404
    assert viewer.get("/static/%2e%2e/app.py").status_code == 404
