"""What is kept of a request, and above all what is not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldfi.errors import InvalidScenario
from ldfi.scenarios.redaction import RawRequest, code, looks_secret, redact
from tests.scenarios.requests import Planted, planted


@settings(max_examples=100)  # there are many places in which a secret may be
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


_NAMES = ["method", "operationName", "query", "extensions", "jsonrpc", "search", "items"]
_VALUES = ["garcia", "flights", "2.0", "query Rows { rows }"]
_DOCUMENTS = st.recursive(
    st.sampled_from([*_VALUES, None, True, 7]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_NAMES), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(_DOCUMENTS)
@example({"search": {"query": "flights", "method": "garcia"}})
@example({"jsonrpc": "2.0", "params": {"jsonrpc": "2.0", "method": "garcia"}})
@example([{"jsonrpc": "2.0", "method": "garcia"}])
@example({"query": "flights", "operationName": "garcia"})
@example([[{"extensions": {}, "operationName": "garcia"}]])
def test_of_a_body_the_shape_alone_is_kept_but_for_what_a_call_calls(body: Any) -> None:
    """Only the whole body, or an item of a batch, is a call, and only by its own protocol."""

    def texts(value: Any, place: tuple[str | int, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
        if isinstance(value, str):
            yield place, value
        for key, each in value.items() if isinstance(value, dict) else ():
            yield from texts(each, (*place, key))
        for number, each in enumerate(value) if isinstance(value, list) else ():
            yield from texts(each, (*place, number))

    for place, text in texts(
        redact(RawRequest("POST", "/", "", (), json.dumps(body).encode())).body, ()
    ):
        if text == "*":
            continue
        call = body[0] if isinstance(body, list) else body
        assert place in {("method",), ("operationName",), (0, "method"), (0, "operationName")}
        if place[-1] == "method":
            assert "jsonrpc" in call
        else:
            document = str(call.get("query")).startswith("query ")
            assert document or isinstance(call.get("extensions"), dict)


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"jsonrpc": "2.0", "method": "getRows"}, {"jsonrpc": "*", "method": "getRows"}),
        ([{"jsonrpc": "2.0", "method": "getRows"}, 1], [{"jsonrpc": "*", "method": "getRows"}]),
        ({"operationName": "Rows", "query": "{ a }"}, {"operationName": "Rows", "query": "*"}),
        (
            {"operationName": "Rows", "extensions": {"persistedQuery": {"version": 1}}},
            {"operationName": "Rows", "extensions": {"persistedQuery": {"version": "*"}}},
        ),
        ({"query": "{ a }", "method": "garcia"}, {"query": "*", "method": "*"}),
        ({"jsonrpc": "2.0", "operationName": "Rows"}, {"jsonrpc": "*", "operationName": "*"}),
    ],
)
def test_what_a_call_calls_is_kept(body: Any, kept: Any) -> None:
    assert redact(RawRequest("POST", "/", "", (), json.dumps(body).encode())).body == kept


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("operationName=Rows&query={rows}", "Rows"),
        ('operationName=Rows&extensions={"persistedQuery":{}}', "Rows"),
        ("operationName=garcia", "*"),
        ("operationName=garcia&query=flights", "*"),
        ("operationName=garcia&extensions=yes", "*"),
    ],
)
def test_an_operation_is_kept_where_a_query_string_speaks_graphql(query: str, kept: str) -> None:
    assert dict(redact(RawRequest("GET", "/graphql", query)).query)["operationName"] == kept


def test_a_body_that_is_no_json_is_dropped() -> None:
    assert redact(RawRequest("POST", "/", body=b"user=alice")).body is None


def test_a_method_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidScenario, match="'BREW' is not an HTTP method"):
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


FORM = re.compile(
    r"""[^\s@/>]+@[^\s@/>]+ | eyJ[\w-]{5,} | (?:\d[ -]?){13,19}
    | [0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12} | (?=[0-9a-f]*\d)[0-9a-f]{16,}
    | \b(?:sk|pk|rk|ghp|gho|ghs|glpat|xox[abposr])[-_]\w{8,} | (?:AKIA|ASIA)\w{12,} | AIza[\w-]{20,}
    | (?:bearer|basic)\s+\S+ | (?=(?:[A-Za-z+=_-]*\d){3})[A-Za-z0-9+=_-]{20,}""",
    re.VERBOSE | re.IGNORECASE,
)
"""The same as one expression, which takes quadratic time."""


@settings(max_examples=200)  # of many that have no such form
@given(
    st.sampled_from(["abcdef01", "abc1-_", "xyz@./> 12", "abcdefghijk0", "aA1+=_- "]).flatmap(
        lambda letters: st.text(letters, max_size=60)
    )
)
def test_the_forms_of_secrets_are_found_in_one_pass(text: str) -> None:
    assert looks_secret(text) is (FORM.search(text) is not None)


@pytest.mark.timeout(20)
def test_a_long_text_takes_as_long_as_it_is() -> None:
    """Half a megabyte took hours."""
    assert not looks_secret("a" * 500_000)
