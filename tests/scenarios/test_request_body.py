"""What is written of a request that only its query or body tells asks for the same again."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ldfi.fit.protocol.device_type import device_type
from ldfi.fit.protocol.features import Features, query_pairs, request_features
from ldfi.fit.protocol.request_protocols import word
from ldfi.scenarios.request_body import AGENTS, AskedFor, asked, query_string
from tests.scenarios.requests import WORDS, formed

words = st.sampled_from(["videos", "lolomo", "title", "rows", "summary", "length", "artwork"])
numbers = st.one_of(
    st.integers(0, 10_000),
    st.fixed_dictionaries({"from": st.integers(0, 9), "to": st.integers(10, 99)}),
)
keys = st.one_of(words, numbers, st.lists(st.one_of(words, numbers), min_size=1, max_size=3))
paths = st.lists(
    st.tuples(words, st.lists(keys, max_size=3)).map(lambda each: [each[0], *each[1]]),
    min_size=1,
    max_size=4,
)
names = st.sampled_from(["Home", "Search", "topRows", "VideoPage"])
signs = st.sampled_from([*"ab&#+;%=?é", "%26", "\t"])
hostile = (
    st.lists(signs, min_size=1, max_size=6).map("".join).filter(lambda text: word(text) == text)
)


def queried(what: AskedFor) -> str:
    return query_string(what.query)


def telling(features: Features) -> dict[str, str]:
    kinds = {"protocol", "falcor", "graphql", "jsonrpc"}
    return {n: v for n, v in features.items() if n.partition(".")[0] in kinds}


@given(paths, st.booleans())
def test_paths_of_falcor_ask_for_the_same(several: list[Any], at_once: bool) -> None:
    values = [several] if at_once else several
    name = "paths" if at_once else "path"
    query = "&".join(f"{name}={json.dumps(each)}" for each in values)
    features = request_features("GET", "/model.json", query)

    written = queried(asked(features, frozenset()))

    assert telling(request_features("GET", "/model.json", written)) == telling(features)


@given(st.lists(hostile, min_size=1, max_size=3, unique=True))
@example(["a&b=1", "c"])
def test_keys_that_a_class_is_about_ask_for_the_same_whatever_is_in_them(path: list[str]) -> None:
    """A client names keys; nothing that it writes in one may become a parameter of its own."""
    features = request_features("GET", "/model.json", f"path={quote(json.dumps(path))}")

    written = queried(asked(features, features))

    assert request_features("GET", "/model.json", written) == features


@given(hostile)
def test_operations_that_a_class_is_about_ask_for_the_same(name: str) -> None:
    query = f"operationName={quote(name)}&query={{a}}"
    features = request_features("GET", "/graphql", query)

    assert request_features("GET", "/graphql", queried(asked(features, features))) == features


@given(st.lists(st.tuples(st.text(min_size=1), st.text()), max_size=4))
def test_a_query_string_is_read_as_it_was_meant(pairs: list[tuple[str, str]]) -> None:
    written = query_string(pairs)

    assert query_pairs(written) == parse_qsl(written, keep_blank_values=True) == pairs
    assert not {"#", "\n", "\r"} & {*written}


@given(st.lists(names, min_size=1, max_size=3, unique=True), st.booleans())
def test_operations_of_graphql_ask_for_the_same(operations: list[str], posted: bool) -> None:
    calls = [{"operationName": name, "query": "{ rows }"} for name in operations]
    if posted:
        body = json.dumps(calls[0] if len(calls) == 1 else calls).encode()
        features = request_features("POST", "/graphql", body=body)
        written = json.dumps(asked(features, ()).body).encode()
        assert telling(request_features("POST", "/graphql", body=written)) == telling(features)
    else:
        features = request_features("GET", "/graphql", f"operationName={operations[0]}&query={{a}}")
        again = queried(asked(features, ()))
        assert telling(request_features("GET", "/graphql", again)) == telling(features)


@pytest.mark.parametrize(
    ("body", "written"),
    [
        ({"query": "{ rows { title } marks }"}, {"query": "query { marks * rows * }"}),
        (
            {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0f" * 32}}},
            {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0f" * 6 + "*"}}},
        ),
        (
            {"jsonrpc": "2.0", "id": 7, "method": "rows.get", "params": {"user": "anna"}},
            {"jsonrpc": "2.0", "id": 1, "method": "rows.get", "params": "*"},
        ),
    ],
)
def test_what_has_no_name(body: Any, written: Any) -> None:
    features = request_features("POST", "/api", body=json.dumps(body).encode())

    assert asked(features, ()).body == written


def test_a_body_of_which_nothing_is_known_is_a_hole() -> None:
    assert asked(request_features("POST", "/orders"), ()).body == "*"
    assert asked(request_features("GET", "/orders"), ()) == AskedFor()


def test_a_path_that_was_cut_off_has_a_hole() -> None:
    deep = ["lolomo", "rows", "title", "artwork", "summary", "length"]
    features = request_features("GET", "/model.json", f"path={json.dumps(deep)}")
    many = [["videos", f"{'abcdefg'[n % 7]}{'hijklmn'[n // 7]}ow"] for n in range(40)]
    cut = request_features("GET", "/model.json", f"path={json.dumps(many)}")

    assert asked(features, ()).query == [
        ("path", '["lolomo","rows","title","artwork","summary","*"]')
    ]
    assert asked(cut, ()).query[-1] == ("path", "*")


@given(st.one_of(formed, st.sampled_from(WORDS)), st.sampled_from(["users", "accounts", "member"]))
def test_nobody_is_named(secret: str, before: str) -> None:
    path = json.dumps([before, secret, "rows"])
    features = request_features("GET", "/model.json", f"path={path}")

    assert secret.casefold() not in queried(asked(features, ())).casefold()


def test_what_the_class_is_about_stays() -> None:
    features = request_features("GET", "/model.json", 'path=["users","settings","rows"]')

    assert asked(features, {"falcor.users.settings"}).query == [
        ("path", '["users","settings","rows"]')
    ]
    assert asked(features, ()).query == [("path", '["users","*","rows"]')]


@pytest.mark.parametrize("device", AGENTS)
def test_an_agent_is_of_its_kind(device: str) -> None:
    assert device_type(AGENTS[device]) == device
