"""Documents of OTLP as JSON: as exporters write them, and with whatever else JSON can say."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

from tests.lineage.otlp_bodies import names, texts

WHATEVER: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        1,
        2,
        7,
        -1,
        -0.0,
        1.5,
        1e300,
        2**63,
        2**70,
        "",
        "2",
        "x",
        "٣",
        "\ud800",
    ),
    *([], {}, [1], {"a": [{"b": None}]}, "0x1", "01" * 8, "AB" * 16, "0" * 16, "AAAAAAAAAAA="),
    *("1" * 20, "9" * 20, "0" * 21, "SPAN_KIND_CLIENT", "STATUS_CODE_ERROR", "SPAN_KIND_NONE"),
]
whatever = st.sampled_from(WHATEVER).map(deepcopy)


def _ids(size: int) -> st.SearchStrategy[str]:
    right = [f"{number:02x}" * size for number in (1, 2, 171)]
    return st.sampled_from([*right, right[2].upper(), "", "00" * size])


_scalars = st.one_of(
    texts.map(lambda text: {"stringValue": text}),
    texts.map(lambda text: {"stringValue": text}),
    st.integers(-(10**17), 10**17).map(lambda number: {"intValue": str(number)}),
    st.sampled_from([200, 404, 503]).map(lambda number: {"intValue": number}),
    st.booleans().map(lambda truth: {"boolValue": truth}),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda number: {"doubleValue": number}),
    st.just({"bytesValue": "AAA="}),
    st.just({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}),
    st.just({}),
)
_values = _scalars | st.lists(_scalars, max_size=3).map(
    lambda all_: {"arrayValue": {"values": all_}}
)
_pairs = st.builds(lambda key, value: {"key": key, "value": value}, names, _values)
_times = st.sampled_from(["0", "5", 5, 10**18, str(10**18), str(2**64 - 1), 7])
_KINDS = ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"]
_spans = st.fixed_dictionaries(
    {"traceId": _ids(16), "spanId": _ids(8), "startTimeUnixNano": _times, "name": texts},
    optional={
        "parentSpanId": _ids(8),
        "endTimeUnixNano": _times,
        "kind": st.integers(0, 5) | st.sampled_from(_KINDS).map("SPAN_KIND_".__add__),
        "attributes": st.lists(_pairs, max_size=4),
        "events": st.lists(
            st.sampled_from([{"name": "exception", "attributes": []}, {"name": "e"}, {}]),
            max_size=2,
        ),
        "links": st.lists(
            st.sampled_from([{"traceId": "ab" * 16, "spanId": "cd" * 8, "traceState": ""}]),
            max_size=1,
        ),
        "status": st.sampled_from([{}, {"code": 2, "message": "m"}, {"code": "STATUS_CODE_OK"}]),
        "flags": st.just(257),
        "droppedAttributesCount": st.just(0),
    },
)
_resources = st.fixed_dictionaries(
    {"attributes": st.lists(_pairs | _values.map(lambda v: {"key": "service.name", "value": v}))}
)
_SCOPES = [
    {"name": "@opentelemetry/instrumentation-pg", "version": "1"},
    *({}, {"name": ""}, {"name": "my own", "attributes": []}),
]
_groups = st.fixed_dictionaries(
    {
        "scopeSpans": st.lists(
            st.fixed_dictionaries(
                {"spans": st.lists(_spans, max_size=3)},
                optional={"scope": st.sampled_from(_SCOPES)},
            ),
            max_size=2,
        )
    },
    optional={"resource": _resources, "schemaUrl": st.just("http://x/")},
)
usual = st.lists(_groups, max_size=2).map(lambda groups: {"resourceSpans": groups})
"""As exporters write it, although what it says may be odd."""

NAMES = (
    *("traceId", "trace_id", "spanId", "span_id", "parentSpanId", "kind", "startTimeUnixNano"),
    *("end_time_unix_nano", "attributes", "events", "links", "status", "code", "key", "value"),
    *("resource", "scopeSpans", "scope_spans", "spans", "resourceSpans", "batches", "result", "x"),
    *("arrayValue", "array_value", "stringValue", "instrumentationLibrarySpans", "name", "values"),
    *("scope", "instrumentationLibrary"),
)


@st.composite
def odd(draw: st.DrawFn) -> Any:
    """The same with a few things taken out, put in or replaced anywhere."""
    document = json.loads(json.dumps(draw(usual)))
    for _ in range(draw(st.integers(1, 3))):
        holders = [document]
        for holder in holders:  # grows while we walk
            inner = holder.values() if isinstance(holder, dict) else holder
            holders += [each for each in inner if isinstance(each, dict | list)]
        holder = draw(st.sampled_from(holders))
        if isinstance(holder, list):
            holder.insert(draw(st.integers(0, len(holder))), draw(whatever))
            continue
        name = draw(st.sampled_from([*holder, *NAMES]))
        if draw(st.booleans()):
            holder[name] = draw(whatever)
        else:
            holder.pop(name, None)
    return document


def written(documents: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    """Documents as bytes, with more or less white space and more or fewer escapes."""
    return st.builds(
        lambda document, indent, ascii_: json.dumps(
            document, indent=indent, ensure_ascii=ascii_
        ).encode(errors="surrogatepass"),
        documents,
        st.sampled_from([None, 1]),
        st.booleans(),
    )
