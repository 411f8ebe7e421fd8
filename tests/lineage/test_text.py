"""What strangers write must not reach a database, a terminal or a script as anything but text."""

from __future__ import annotations

import json
import sys
import unicodedata
from dataclasses import fields
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ldfi.lineage.operation import Operation, operation
from ldfi.lineage.readers.otlp_json import decode_json
from ldfi.lineage.text import clean
from tests.kit.spans import document, in_json

TURNS = "".join(
    chr(each)
    for each in range(sys.maxunicode + 1)
    if unicodedata.bidirectional(chr(each))
    in {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
)
"""What has the characters around it shown in another order."""
MARKS = "\u061c\u200e\u200f"
"""Letters without a shape, of which what is beside them takes its direction."""

HOSTILE = st.lists(
    st.characters(exclude_categories=())
    | st.sampled_from("\0\n\r\t\x1b\x7f\u2028\ud800" + TURNS + MARKS),
    max_size=30,
).map("".join)
"""Of a text's alphabet these few would be drawn once in a million letters."""


@given(HOSTILE)
def test_what_is_clean_is_one_line_of_characters_that_can_be_written(text: str) -> None:
    cleaned = clean(text)
    assert len(cleaned) == len(text)
    assert not {"Cc", "Cs", "Zl", "Zp"} & {unicodedata.category(each) for each in cleaned}
    cleaned.encode()
    assert not {*TURNS, *MARKS} & {*cleaned}
    for was, now in zip(text, cleaned, strict=True):
        taken_out = unicodedata.category(was) in {"Cc", "Cs", "Zl", "Zp"} or was in TURNS + MARKS
        assert now == ("\ufffd" if taken_out else was)


@given(
    HOSTILE,
    HOSTILE,
    st.sampled_from(["", "server", "client", "consumer"]),
    st.dictionaries(
        st.sampled_from(
            [
                *("method", "target", "path", "url", "query", "route", "point", "db_statement"),
                *("host", "peer", "rpc_method", "rpc_service", "graphql_name", "experiment"),
                "header.x-tenant",
            ]
        ),
        HOSTILE | HOSTILE.map(lambda text: "/" + text) | st.just("/n%00x?a=%0ab"),
    ),
)
def test_nothing_of_an_operation_holds_what_a_database_refuses(
    service: str, name: str, kind: str, given_fields: dict[str, str]
) -> None:
    what = operation(service, name, kind, 0, False, tuple(sorted(given_fields.items())))
    for text in _texts(what):
        assert text == clean(text)


def test_a_nul_in_a_path_is_no_nul_behind_the_door() -> None:
    span: dict[str, Any] = {"traceId": "ab" * 16, "spanId": "cd" * 8, "name": "GET", "kind": 2}
    pairs = in_json({"http.method": "GET", "http.target": "/n\0x?q=%00"})
    written = document(span | {"startTimeUnixNano": "1", "attributes": pairs})
    [read] = decode_json(json.dumps(written).encode()).spans
    assert read.operation.features["path"] == "/n\ufffdx"
    assert read.operation.features["query.q"] == "\ufffd"


def _texts(what: Operation) -> list[str]:
    found = []
    for each in fields(what):
        value = getattr(what, each.name)
        if isinstance(value, str) and each.name != "kind":
            found.append(value)
        elif each.name == "features":
            found += [*value, *value.values()]
        elif isinstance(value, tuple) and each.name != "fields":
            found += value
    return found
