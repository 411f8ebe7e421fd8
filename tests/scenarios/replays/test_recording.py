"""Recordings: read from logs, HAR files and traces without secrets, written, filled, exported."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from ldfi.errors import InvalidReplay
from ldfi.scenarios.replays.arrivals import RateProfile, arrivals, stretches
from ldfi.scenarios.replays.k6 import options, script
from ldfi.scenarios.replays.prepared import prepared
from ldfi.scenarios.replays.recording import (
    RecordedRequest,
    Recording,
    filled,
    read_recording,
    schema,
)
from ldfi.scenarios.replays.sources import kind_of, record

SCHEMA = Path(__file__).parents[3] / "docs" / "recording.schema.json"
TRACES = Path(__file__).parents[3] / "examples" / "traces"

COMBINED = """\
10.0.0.7 - anna [22/Nov/2026:10:00:00 +0000] "GET /users/anna/orders/17?page=home&token=s3cr3t HTTP/1.1" 200 12 "-" "Mozilla/5.0"
10.0.0.8 - - [22/Nov/2026:10:00:01 +0000] "GET /users/ben/orders/18?page=home&token=0th3r HTTP/1.1" 200 12 "-" "curl"
10.0.0.8 - - [22/Nov/2026:10:00:01 +0000] "POST /orders HTTP/2.0" 201 12 "-" "curl"
10.0.0.9 - - [22/Nov/2026:10:00:02 +0000] "\\x16\\x03\\x01" 400 0 "-" "-"
"""  # noqa: E501
LINES = [
    {"method": "GET", "path": "/home", "status": 200, "remote_user": "anna"},
    {"request_method": "GET", "uri": "/home", "args": "page=2"},
    {"request": "GET /rows?user=anna HTTP/1.1", "status": 200},
    {"httpRequest": {"requestMethod": "GET", "requestUrl": "https://x.example/home"}},
    {"level": "info", "message": "started"},
]
HAR = {
    "log": {
        "entries": [
            {
                "request": {
                    "method": "POST",
                    "url": "https://shop.example/api/v1/orders?lang=de",
                    "headers": [
                        {"name": "Authorization", "value": "Bearer s3cr3t"},
                        {"name": "Cookie", "value": "sid=s3cr3t"},
                        {"name": "Accept", "value": "application/json"},
                    ],
                    "postData": {"text": '{"sku": "A-17", "email": "anna@example.org"}'},
                }
            }
        ]
    }
}


def written(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_an_access_log_is_recorded_without_people_in_it(tmp_path: Path) -> None:
    file = written(tmp_path, "access.log", COMBINED)
    assert kind_of(file) == "access log"
    found = record(file, "access log", ["page"])
    lines = found.recording.to_lines()
    assert found.unread == 1
    assert not re.search("anna|ben|s3cr3t|0th3r|17|18|10\\.0", lines)
    first, second = found.recording.requests
    assert (first.times, first.request_class) == (2, "GET /users/*/orders/*")
    assert first.query == {"page": "home", "token": "*"}
    assert (second.method, second.safe) == ("POST", False)


def test_json_lines_of_several_makers_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, "log.jsonl", "\n".join(map(json.dumps, LINES)))
    found = record(file, kind_of(file), [])
    assert found.unread == 1
    assert {(e.path, *e.query.items()): e.times for e in found.recording.requests} == {
        ("/home",): 2,
        ("/home", ("page", "*")): 1,
        ("/rows", ("user", "*")): 1,
    }


def test_a_har_file_keeps_of_bodies_the_shape_and_only_where_allowed(tmp_path: Path) -> None:
    file = written(tmp_path, "shop.har", json.dumps(HAR))
    assert kind_of(file) == "har"
    (plain,) = record(file, "har", []).recording.requests
    assert plain.body is None
    (shaped,) = record(file, "har", [], bodies=True).recording.requests
    assert shaped.body == {"sku": "*", "email": "*"}
    assert shaped.headers == {"accept": "application/json"}
    assert "s3cr3t" not in shaped.model_dump_json()


def test_traces_are_a_recording_of_their_requests() -> None:
    file = TRACES / "hotrod.otlp.jsonl.gz"
    assert kind_of(file) == "traces"
    found = record(file, kind_of(file), []).recording
    assert found.head.source == "traces"
    assert all(each.path.startswith("/") for each in found.requests)


@pytest.mark.parametrize("text", ["", "\n", "nothing that is a request\n", "{}"])
def test_a_file_without_requests_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidReplay):
        record(written(tmp_path, "access.log", text), "access log", [])
    with pytest.raises(InvalidReplay):
        read_recording(written(tmp_path, "r.jsonl", text))


WORDS = st.text("abcxyz", min_size=1, max_size=4)
BODIES = st.recursive(
    st.sampled_from([None, True, "*", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(WORDS, inner, max_size=2),
    max_leaves=4,
)
REQUESTS = st.builds(
    RecordedRequest,
    method=st.sampled_from(["GET", "POST"]),
    path=st.lists(WORDS | st.just("*"), min_size=1, max_size=4).map(lambda p: "/" + "/".join(p)),
    query=st.dictionaries(WORDS, WORDS | st.just("*"), max_size=2),
    body=BODIES,
    times=st.integers(1, 9),
)


@given(st.lists(REQUESTS, min_size=1, max_size=4))
def test_a_recording_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, requests: list[RecordedRequest]
) -> None:
    file = tmp_path_factory.mktemp("r") / "r.jsonl"
    file.write_text(Recording(tuple(requests)).to_lines())
    assert read_recording(file).requests == tuple(requests)
    for line in file.read_text().splitlines():
        Draft202012Validator(schema()).validate(json.loads(line))


@given(
    st.lists(REQUESTS, max_size=4), st.dictionaries(WORDS, st.lists(WORDS, min_size=1), max_size=3)
)
def test_filling_leaves_no_hole_and_loses_no_request_uncounted(
    requests: list[RecordedRequest], values: dict[str, list[str]]
) -> None:
    made, left_out = filled(requests, values)
    assert all("*" not in json.dumps([e.path, e.query, e.body]) for e, _ in made)
    total = sum(weight for _, weight in made) + sum(each.times for each in left_out)
    assert abs(total - sum(each.times for each in requests)) < 1e-6


def test_holes_are_filled_by_the_word_before_them_and_names_stay() -> None:
    one = RecordedRequest(path="/users/*", query={"page": "*"}, times=4)
    made, _ = filled([one], {"users": ["7", "a b"], "page": ["1"]})
    assert [(e.target, e.request_class, w) for e, w in made] == [
        ("/users/7?page=1", "GET /users/*", 2.0),
        ("/users/a%20b?page=1", "GET /users/*", 2.0),
    ]


def test_what_cannot_be_sent_is_left_out_and_nothing_at_all_is_refused() -> None:
    post, hole = RecordedRequest(method="POST", path="/a"), RecordedRequest(path="/u/*")
    made, left_out = prepared(Recording((post, hole, RecordedRequest(path="/b"))), {}, unsafe=False)
    assert ([each.name for each in made], len(left_out)) == (["GET /b"], 2)
    with pytest.raises(InvalidReplay, match=r"none of the 2 recorded requests.*--fill u=V"):
        prepared(Recording((post, hole)), {}, unsafe=False)


def test_what_is_left_out_is_named_with_the_way_out() -> None:
    many = [RecordedRequest(path=f"/{'a' * n}/*", times=n) for n in range(1, 61)]
    post = RecordedRequest(method="POST", path="/orders", times=9)
    listed = (*many, RecordedRequest(path="/p/*/q/*"), post, RecordedRequest(path="/b"))

    _, left_out = prepared(Recording(listed), {"p": ["7"]}, unsafe=False)

    said, n60, n59 = str(left_out), "a" * 60, "a" * 59
    assert len(left_out) == 60 * 61 // 2 + 1 + 9
    assert f"1831 have holes (*): GET /{n60}/*, GET /{n59}/*, " in said
    assert " and 58 more; --fill a=VALUES, --fill aa=VALUES, --fill aaa=VALUES and 58 more" in said
    assert said.endswith("9 would change something: POST /orders; --unsafe sends them")
    assert str(prepared(Recording(listed[-1:]), {}, unsafe=False)[1]) == ""


def test_what_is_dropped_of_a_query_is_said_and_what_keeps_it(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    asked = ("view=full&page=4711", "view=short&user=kim&page=3", "view=full&view=x9")
    lines = [f'- - - [now] "GET /home?{each} HTTP/1.1" 200 1\n' for each in asked]
    log.write_text("".join(lines))

    found, kept = (record(log, "access log", keep) for keep in ((), ("view",)))

    words, for_good = found.told()
    assert (
        words
        == "Values of query parameters were dropped: view (full, short). --keep view keeps them."
    )
    assert for_good.endswith("for good: page, user.")
    assert "4711" not in words + for_good
    assert not any("view (" in line for line in kept.told())
    assert "view" in {name for each in kept.recording.requests for name in each.query}


def test_the_published_schema_is_in_step() -> None:
    assert json.loads(SCHEMA.read_text()) == schema(), (
        "run: ldfi replay schema > docs/recording.schema.json"
    )


@given(st.sampled_from(RateProfile), st.floats(1, 500), st.integers(1, 600))
def test_the_stages_of_k6_send_as_many_as_we_do(
    profile: RateProfile, rate: float, seconds: int
) -> None:
    made = stretches(profile, rate, seconds)
    scenario = options(made, 50)["scenarios"]["replay"]
    at, sent = scenario["startRate"], 0.0
    for stage in scenario["stages"]:
        duration = float(re.sub("ms|s", "", stage["duration"]))
        duration /= 1000 if stage["duration"].endswith("ms") else 1
        sent += (at + stage["target"]) / 2 / 60 * duration
        at = stage["target"]
    assert abs(sent - len(list(arrivals(made)))) <= 1 + seconds / 60


def test_the_script_holds_every_request_and_no_template_is_left() -> None:
    listed = (
        RecordedRequest(path="/home", times=3),
        RecordedRequest(method="POST", path="/orders", body={"sku": "'}`${x}"}),
    )
    requests, _ = prepared(Recording(listed), {}, unsafe=True)
    text = script(requests, stretches(RateProfile.CONSTANT, 100, 60), 50)
    begin = text.index("const requests = ") + len("const requests = ")
    held = json.loads(text[begin : text.index(";\nconst total")])
    assert [(e["method"], e["target"], e["weight"]) for e in held] == [
        ("GET", "/home", 3.0),
        ("POST", "/orders", 1.0),
    ]
    assert json.loads(held[1]["body"]) == {"sku": "'}`${x}"}
    assert "{{" not in text
    assert "http.request(" in text


FALCOR = [
    'GET /model.json?path=["videos",123,"title"]&path=["lolomo",{"to":3},["name","length"]]',
    'GET /model.json?path=["users","anna","name"]',
    'GET /model.json?paths=[["videos",[7,8],"title"],["genres","title"]]',
]


def test_what_falcor_is_asked_for_is_recorded_and_filled(tmp_path: Path) -> None:
    lines = (f'1.2.3.4 - - [] "{quote(each, safe="/ ?=&")} HTTP/1.1" 200 1' for each in FALCOR)
    file = written(tmp_path, "access.log", "\n".join(lines))
    found = record(file, "access log", []).recording
    first, second = '["videos","*","title"]', '["lolomo",{"to":3},["name","length"]]'
    assert [each.query for each in found.requests] == [
        {"path": [first, second]},
        {"path": '["users","*","name"]'},
        {"paths": '[["videos",["*"],"title"],["genres","title"]]'},
    ]
    assert found.requests[0].request_class == (
        "GET /model.json lolomo.*.length, lolomo.*.name, videos.*.title"
    )

    made, left_out = filled(found.requests, {"videos": ["7", "tt9"]})
    assert len(left_out) == 1
    assert [(unquote(each.target), share) for each, share in made] == [
        *((f"/model.json?path={first.replace(HOLE, k)}&path={second}", 0.5) for k in KEYS),
        *((f'/model.json?paths=[["videos",[{k}],"title"],["genres","title"]]', 0.5) for k in KEYS),
    ]


HOLE = '"*"'
KEYS = ("7", '"tt9"')


def test_operations_of_graphql_are_recorded_and_filled_each_by_itself(tmp_path: Path) -> None:
    bodies = (
        {"operationName": "Home", "query": "query Home { rows }", "variables": {"id": 7}},
        {"operationName": "Search", "query": "query Search { found }"},
    )
    entries = [
        {"request": {"method": "POST", "url": "https://shop/graphql", "postData": {"text": text}}}
        for text in map(json.dumps, bodies)
    ]
    file = written(tmp_path, "shop.har", json.dumps({"log": {"entries": entries}}))
    found = record(file, "har", [], bodies=True).recording
    assert [each.request_class for each in found.requests] == [
        "POST /graphql Home",
        "POST /graphql Search",
    ]

    made, left_out = filled(found.requests, {"Home.query": ["query Home { rows }"], "id": ["8"]})
    assert len(left_out) == 1
    assert [each.body for each, _ in made] == [
        {"operationName": "Home", "query": "query Home { rows }", "variables": {"id": "8"}}
    ]
