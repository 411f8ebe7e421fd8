"""What is kept of a request, and above all what is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

from ldfi.experiments.errors import InvalidScenario
from ldfi.experiments.scenarios.redaction import RawRequest, code, looks_secret, redact
from tests.experiments.scenarios.requests import Planted, planted


@settings(max_examples=400)
@given(planted())
def test_no_secret_survives(case: Planted) -> None:
    kept = redact(case.request)
    text = json.dumps(
        [kept.method, kept.path, kept.query, dict(kept.headers), kept.body], ensure_ascii=False
    ).casefold()

    for secret in case.secrets:
        assert secret.casefold() not in text


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("/boot", "/boot"),
        ("/", "/"),
        ("/titles/17/similar", "/titles/*/similar"),
        ("/v2/topRows/top-rows/API", "/v2/topRows/top-rows/API"),
        ("/users/alice/rows", "/users/*/rows"),
        ("/reset/QmFzZTY0", "/reset/*"),
        ("/boot;jsessionid=0A1B", "/boot"),
        ("/a%20b", "/*"),
        ("/members", "/members"),
        ("/donaudampfschifffahrtsgesellschaft", "/*"),
    ],
)
def test_paths(path: str, kept: str) -> None:
    assert redact(RawRequest("GET", path)).path == kept


def test_values_of_parameters_go_but_for_those_that_make_the_class() -> None:
    query = "view=compact&q=alice&view=wide&page=&token=wide-open&sort=4111"
    defining = {"view": "compact", "page": "", "token": "wide-open", "sort": "4111"}

    kept = redact(RawRequest("GET", "/", query), defining).query

    assert kept == (
        ("view", "compact"),
        ("q", "*"),
        ("view", "*"),
        ("page", ""),
        ("token", "*"),
        ("sort", "*"),
    )


def test_four_headers_are_kept_and_of_these_what_is_known() -> None:
    headers = [
        ("Accept", "application/json;q=0.9, text/x-alice"),
        ("Content-Type", "application/json; charset=utf-8"),
        ("Accept-Language", "de-DE,de;q=0.9,en"),
        ("X-Device-Type", "tv"),
        ("User-Agent", "Mozilla/5.0"),
        ("traceparent", "00-aa-bb-01"),
    ]

    assert redact(RawRequest("GET", "/", headers=headers)).headers == {
        "accept": "application/json",
        "accept-language": "de-DE",
        "content-type": "application/json",
        "x-device-type": "tv",
    }


def test_a_name_known_from_one_place_goes_everywhere() -> None:
    kept = redact(
        RawRequest(
            "POST",
            "/alice/rows",
            "view=alice",
            [("x-member-id", "Alice"), ("x-device-type", "alice")],
            b'{"rows": [{"alice": 1}, 2], "all": true, "none": null}',
        ),
        {"view": "alice"},
    )

    assert kept.path == "/*/rows"
    assert kept.query == (("view", "*"),)
    assert kept.headers == {}
    assert kept.body == {"rows": [{"*": "*"}], "all": True, "none": None}


def test_a_body_that_is_no_json_is_dropped() -> None:
    assert redact(RawRequest("POST", "/", body=b"user=alice")).body is None


def test_a_method_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidScenario, match="'BREW' is no method"):
        redact(RawRequest("BREW", "/"))


@pytest.mark.parametrize("text", ["http_503", "PLAYBACK-7", "no_rows", "timeout", "status-502"])
def test_codes_of_failures_are_kept(text: str) -> None:
    assert code(text) == text


@pytest.mark.parametrize(
    "text", ["member-12", "no rows for alice@example.com", "user7", "the session ended", "é"]
)
def test_what_may_be_a_message_about_somebody_is_not(text: str) -> None:
    assert code(text) == "*"


@pytest.mark.parametrize(
    "name",
    [
        "api>http:GET:127.0.0.1:8081/playlist-fallback/playlists/*",
        "bookmarks>db:SELECT:recordsdb/marks",
        "home>function:rank",
        "api>rpc:Get:/shop.catalogue.v1.PricesAndAvailabilityService",
        "api>http:GET:ratings.shop.svc.cluster.local/titles/*/similar",
    ],
)
def test_names_of_points_have_not_the_form_of_secrets(name: str) -> None:
    assert not looks_secret(name)
