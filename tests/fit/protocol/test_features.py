"""What an edge reads of a request, and what it makes of a predicate over it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ldfi.fit.protocol.chosen_features import parse
from ldfi.fit.protocol.device_type import device_type
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.features import query_features, query_pairs, request_features
from ldfi.fit.protocol.predicate import GUARD, Condition, Predicate, fits
from ldfi.fit.protocol.rules import Lease, Rule
from ldfi.lineage.attributes import features_of_query, template_query
from tests.fit.test_vectors import vectors


@pytest.mark.parametrize("case", vectors("features.json", "requests"))
def test_the_features_of_requests(case: dict[str, Any]) -> None:
    body = case["body"].encode() if case["body"] is not None else None
    headers = [(name, value) for name, value in case["headers"]]
    asked = (case["method"], case["path"], case["query"], headers)
    assert request_features(*asked, body, set(case["wanted"])) == case["features"]


@pytest.mark.parametrize("case", vectors("features.json", "predicates"))
def test_which_predicates_hold(case: dict[str, Any]) -> None:
    assert Predicate.from_json(case["conditions"]).holds(case["features"]) is case["holds"]


words = st.text("abcdefghijklmnop", min_size=1, max_size=8)
keys = st.one_of(
    words, st.integers(0, 10**6), st.fixed_dictionaries({"to": st.integers(0, 9)}), st.none()
)
paths = st.lists(st.one_of(keys, st.lists(keys, min_size=1, max_size=3)), min_size=1, max_size=4)


@given(st.lists(paths, min_size=1, max_size=4))
def test_falcor_paths_are_the_same_features_one_by_one_and_as_one_list(asked: list[Any]) -> None:
    expected = {prefix for path in asked for prefix in prefixes(path)}
    assume(expected)  # a list without a word may be anything
    assume(not any(all(isinstance(key, list) for key in path) for path in asked))  # several paths
    one_by_one = query_features(urlencode([("path", json.dumps(path)) for path in asked]))
    as_a_list = query_features(urlencode({"paths": json.dumps(asked)}))
    assert one_by_one == as_a_list
    # And they are the prefixes of what is asked for, ids and ranges wildcarded
    assert {name for name in one_by_one if name != "protocol"} == expected


def prefixes(path: list[Any], before: str = "falcor") -> set[str]:
    if not path:
        return set()
    keys = path[0] if isinstance(path[0], list) else [path[0]]
    found = set()
    for key in {each if isinstance(each, str) else "*" for each in keys}:
        here = f"{before}.{key}"
        found |= prefixes(path[1:], here) | ({here} if key != "*" else set())
    return found


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=6))
def test_a_query_of_a_span_has_the_features_an_edge_sees(pairs: list[tuple[str, str]]) -> None:
    query = urlencode(pairs, errors="replace")
    seen = {n: v for n, v in request_features("GET", "/", query).items() if n not in WHERE}
    assert features_of_query(template_query(query)) == seen


WHERE = {"method", "path"}


def test_every_value_of_a_repeated_parameter_is_seen() -> None:
    assert request_features("GET", "/", "kind=film&kind=series")["query.kind"] == "film,series"
    assert request_features("GET", "/", "kind=series&kind=film")["query.kind"] == "film,series"


@pytest.mark.parametrize(
    ("agent", "device"),
    [
        ("Mozilla/5.0 (Windows NT 10.0; Win64; x64) Chrome/143.0 Safari/537.36", "desktop"),
        ("Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) Safari/605.1.15", "desktop"),
        ("Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/143.0 Mobile Safari/537.36", "phone"),
        ("Mozilla/5.0 (Linux; Android 15; SM-X710) Chrome/143.0 Safari/537.36", "tablet"),
        ("Mozilla/5.0 (iPad; CPU OS 18_1 like Mac OS X) Mobile/15E148", "tablet"),
        ("Mozilla/5.0 (Linux; Android 11; AFTMM) Chrome/120 Mobile Safari/537.36", "tv"),
        ("Mozilla/5.0 (Web0S; Linux/SmartTV) Chrome/120 Safari/537.36", "tv"),
        ("Mozilla/5.0 (SMART-TV; LINUX; Tizen 7.0) Version/7.0 TV Safari/537.36", "tv"),
        ("Mozilla/5.0 (PlayStation; PlayStation 5/9.0) Safari/605.1.15", "console"),
        ("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "bot"),
        ("curl/8.9", "bot"),
        ("OurOwnThing/7", "other"),
    ],
)
def test_the_kind_of_device(agent: str, device: str) -> None:
    assert device_type(agent) == device


def test_what_carries_credentials_cannot_be_chosen() -> None:
    given = "header.x-plan, header.Authorization,cookie.session_id,baggage.tenant,header.,x,path.a"
    assert parse(given) == {"header.x-plan", "baggage.tenant"}


def rule(*conditions: Condition) -> Rule:
    fault = Fault("api>http:GET:ratings/titles/*", "error")
    return Rule("e1", "salt", Predicate.of(conditions), 0.1, 0.1, (fault,))


def test_an_edge_of_before_lets_a_rule_be_that_it_would_take_for_met() -> None:
    without = rule(Condition("path", "/m"), Condition("falcor.videos", negated=True))
    written = without.to_json()

    assert Rule.from_json(written) == without
    assert GUARD in written["predicate"]
    # When an edge reads it that knows nothing of guards, a condition is left that never holds
    features = {"method": "GET", "path": "/m"}
    as_before = [features.get(each["feature"]) == each["value"] for each in [GUARD]]
    assert not all(as_before)


def test_rules_over_what_edges_have_always_known_are_written_as_before() -> None:
    plain = rule(Condition("path", "/m"), Condition("query.full", negated=True))
    assert GUARD not in plain.to_json()["predicate"]
    assert plain.to_json()["predicate"] == plain.predicate.to_json()


def test_a_lease_says_what_its_rules_ask_for() -> None:
    lease = Lease((rule(Condition("header.x-plan", "gold"), Condition("method", "GET")),))
    assert lease.wanted == {"header.x-plan", "method"}
    assert not lease.reads_bodies
    assert Lease((rule(Condition("graphql.operation", "Home")),)).reads_bodies


segments = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=4)


@given(segments, segments)
def test_a_path_fits_a_template_segment_by_segment(template: list[str], path: list[str]) -> None:
    expected = len(template) == len(path) and all(
        t in ("*", p) for t, p in zip(template, path, strict=False)
    )
    assert fits("/" + "/".join(template), "/" + "/".join(path)) is expected


@given(
    st.text("ab=&+%25F CD3a:;é")
    | st.lists(
        st.sampled_from(["%22", "%5B", "%5D", "%2C", "%2c", "%25", "%C3", "%A9", "=", "&", "2"])
    ).map("".join)
)
def test_a_query_is_split_as_the_standard_library_does(query: str) -> None:
    assert query_pairs(query) == parse_qsl(query, keep_blank_values=True)
