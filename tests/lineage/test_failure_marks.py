"""Each way to mark a failed call, as docs/failure-marks.md lists them, in each format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ldfi.lineage.blame import blame
from ldfi.lineage.evidence import support, walk
from ldfi.lineage.readers.formats import read_json, read_message
from ldfi.lineage.readers.otlp import decode_in_python
from ldfi.lineage.readers.otlp_json import decode_json_in_python
from ldfi.lineage.span import Span, Trace
from ldfi.lineage.tree import Tree, build
from tests.lineage.formats import WRITERS, Made
from tests.lineage.native import told

DOCS = Path(__file__).parents[2] / "docs" / "failure-marks.md"
ROWS = [
    tuple(cell.strip() for cell in line.strip("| ").split(" | "))
    for line in DOCS.read_text().splitlines()
    if re.match(r"\| (`|event)", line)
]
VERDICTS = {"failed", "answered", "doubtful", "silent"}
PAY = "web>call:pay"


def request(mark: str, answer: Made | None = None) -> list[Made]:
    """A request that was lost, with the one call that it made and what is written on that."""
    attributes: dict[str, Any] = {}
    made = Made(2, 1, "web", "client", "pay", (1, 9))
    for event, key, value in re.findall(r"event `(\w+)`|`([\w.]+)=([^`]+)`", mark):
        if event:
            made = replace(made, events=(event,))
        elif key == "status":
            made = replace(made, status=value)
        else:
            attributes[key] = json.loads(value)
    said = {"http.request.method": "POST", "url.path": "/", "http.response.status_code": 500}
    root = Made(1, 0, "web", "server", "POST /", (0, 10), said)
    return [root, replace(made, attributes=attributes), *([answer] if answer else [])]


def read(body: bytes, form: str) -> list[Span]:
    """Read a body by whatever reads its format, which must agree."""
    batch = (read_message if form == "otlp-protobuf" else read_json)(body)
    by_reference = {"otlp-protobuf": decode_in_python, "otlp-json": decode_json_in_python}
    if form in by_reference:
        assert told(by_reference[form](body)) == told(batch)
    return list(batch.spans)


def tree(spans: Sequence[Span]) -> Tree:
    built = build(Trace.of(spans[0].trace_id, spans))
    assert built is not None
    return built


def verdict(built: Tree) -> tuple[str, frozenset[str], frozenset[str], str]:
    (call,) = walk(built.calls)
    said = "failed" if call.failed else "doubtful" if call.doubtful else "well"
    return said, support(built), frozenset(blame(built, ())), call.failure


def test_the_table_is_long_and_each_row_is_another() -> None:
    assert len({row[0] for row in ROWS}) == len(ROWS) >= 60
    assert {row[2] for row in ROWS} == VERDICTS


@pytest.mark.parametrize(("mark", "_", "expected"), ROWS)
def test_a_mark_has_its_verdict_in_each_format(mark: str, _: str, expected: str) -> None:
    found = {
        form: (verdict(tree(spans)), next(s for s in spans if s.operation.kind == "client"))
        for form, spans in ((f, read(write(request(mark)), f)) for f, write in WRITERS.items())
    }

    # All formats say the same of the call, and of how it failed
    assert len({said for said, _ in found.values()}) == 1
    (said, relied_on, blamed, _), call = found["otlp-json"]
    point = call.operation.point
    assert point is not None
    assert said == {"answered": "well", "silent": "well"}.get(expected, expected)
    # In doubt it keeps its place in the support, and it is suspected
    assert (point in relied_on) == (expected != "failed")
    assert blamed == ({point} if expected in {"failed", "doubtful"} else frozenset())
    # What says nothing leaves the word to the callee
    if expected != "doubtful":
        known = {"failed": True, "answered": False, "silent": None}[expected]
        assert {span.operation.failed for _, span in found.values()} == {known}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.parametrize(
    ("until", "code", "suspected"),
    [
        (9, 200, False),
        (10, 200, False),  # a clock that is coarse
        (400, 200, True),  # it goes on long after it was given up
        (400, 0, True),
        (8, 499, True),
        (8, 500, True),
    ],
)
def test_a_callee_that_outlasts_its_call_or_says_that_it_failed_is_suspected(
    form: str, until: int, code: int, suspected: bool
) -> None:
    said = {"http.response.status_code": code} if code else {}
    answer = Made(3, 2, "pay", "server", "POST /pay", (2, until), said)

    built = tree(read(WRITERS[form](request("", answer)), form))

    (call,) = built.calls
    assert bool(blame(built, ())) == suspected
    assert call.failed == (code >= 499)


def test_a_doubt_is_no_suspect_where_anything_failed_and_leads_to_the_innermost() -> None:
    # Given calls within one another, each given up by its caller
    chain = [
        *request(""),
        Made(3, 2, "pay", "server", "POST /pay", (2, 500)),
        Made(4, 3, "pay", "client", "bank", (3, 7)),
        Made(5, 4, "bank", "server", "POST /bank", (4, 900)),
    ]
    # Then the innermost is suspected
    (innermost,) = blame(tree(read(WRITERS["jaeger"](chain), "jaeger")), ())
    assert innermost.startswith("pay>call:bank")
    # And nobody is where a call failed beside it
    beside = Made(6, 1, "web", "client", "mail", (1, 2), status="ERROR")
    (failed,) = blame(tree(read(WRITERS["jaeger"]([*chain, beside]), "jaeger")), ())
    assert failed.startswith("web>call:mail")
