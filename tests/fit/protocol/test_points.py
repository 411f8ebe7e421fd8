from __future__ import annotations

import doctest
import re
import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.protocol import points
from ldfi.fit.protocol.points import (
    MAX_NAME_LENGTH,
    Point,
    as_path,
    http_point,
    template_path,
    template_route,
    template_words,
)


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/", "/"),
        ("", "/"),
        ("/titles/17", "/titles/*"),
        ("/v1/titles/tt0111161?x=1", "/v1/titles/*"),
        ("/s3/oauth2/h264", "/s3/oauth2/*"),
        ("/users/a%20b/c", "/users/*/c"),
        ("/users/kim@example.org", "/users/*"),
        ("/blobs/d41d8cd98f00b204e9800998ecf8427e", "/blobs/*"),
        ("/deadbeef/facade", "/deadbeef/facade"),
        ("/days/2026-11-21", "/days/*"),
        ("/owners/*/pets", "/owners/*/pets"),
    ],
)
def test_identifiers_in_a_path_become_wildcards(path: str, template: str) -> None:
    assert template_path(path) == template


@pytest.mark.parametrize("route", ["/o/{id}/pets", "/o/<int:id>/pets", "/o/:id/pets"])
def test_routes_of_all_frameworks_look_the_same(route: str) -> None:
    assert template_route(route) == "/o/*/pets"


@given(st.uuids(), st.integers(min_value=0))
def test_no_uuid_and_no_number_survives(uuid: object, number: int) -> None:
    assert template_path(f"/a/{uuid}/b/{number}") == "/a/*/b/*"


@given(st.text(max_size=60))
def test_templating_is_idempotent(path: str) -> None:
    once = template_path(path)
    assert template_path(once) == once


def test_the_port_counts_only_where_the_host_is_an_address() -> None:
    assert http_point("api", "get", "Ratings", 80, "/t/1") == "api>http:GET:ratings/t/*"
    assert http_point("api", "GET", "127.0.0.1", 81, "/t/1") == "api>http:GET:127.0.0.1:81/t/*"
    assert http_point("api", "GET", "localhost", 81, "/t") == "api>http:GET:localhost:81/t"


@given(
    st.text(max_size=30),
    st.text(max_size=10),
    st.text(max_size=30),
    st.integers(0, 65535),
    st.text(),
)
def test_a_name_is_printable_short_and_reads_back(
    caller: str, method: str, host: str, port: int, path: str
) -> None:
    name = http_point(caller, method, host, port, path)
    assert not {unicodedata.category(each) for each in name} & {"Cc", "Cs", "Co", "Zs", "Zl", "Zp"}
    assert not BIDI & set(name)
    assert len(name) <= MAX_NAME_LENGTH
    assert str(Point.parse(name)) == name


BIDI = set("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What turns the direction of text around, so that a name looks like another."""

WHOLE = Point("api", "call", "GET", "shop", "/x")
LETTERS = st.text(st.characters(categories=["L", "M", "N"]), min_size=1, max_size=20)


@given(LETTERS, LETTERS)
def test_names_of_letters_stay_apart_and_readable(one: str, other: str) -> None:
    for place in ("caller", "operation", "peer", "template"):
        named, unlike = str(replace(WHOLE, **{place: one})), str(replace(WHOLE, **{place: other}))
        assert (named == unlike) == (one == other)
        assert one in named


@given(st.text(st.characters(categories=["Lo"]), min_size=1, max_size=9))
def test_what_is_no_address_keeps_its_letters(name: str) -> None:
    assert as_path(name) == "/" + name
    assert template_words(name) == name
    assert template_path("/" + name) == ("/" + name if name.isascii() else "/*")


ASCII = st.text(st.characters(max_codepoint=127), max_size=30)


@given(ASCII, ASCII, ASCII, ASCII)
def test_names_of_ascii_are_what_they_have_always_been(
    caller: str, operation: str, peer: str, path: str
) -> None:
    def cleaned(text: str, more: str = "") -> str:
        return re.sub(rf"[^A-Za-z0-9._~*{{}}$()!,;=@+{more}-]+", "_", text)

    start = f"{cleaned(caller) or 'unknown'}>call:{cleaned(operation)}"
    address = ":".join(cleaned(part) for part in peer.split(":"))
    was = f"{start}:{address}/{cleaned(path, '/:')}"[:MAX_NAME_LENGTH]
    assert str(Point(caller, "call", operation, peer, "/" + path)) == was


def test_the_examples_in_the_documentation_hold() -> None:
    assert doctest.testmod(points).failed == 0
