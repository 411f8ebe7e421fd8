"""The file: readable, in one order, in step with its schema, and free of secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from ldfi.errors import InvalidScenario
from ldfi.fit.protocol.context import decode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.lineage.outline import Outline
from ldfi.scenarios.request import context_of
from ldfi.scenarios.scenario import Scenario, of_document, read, schema, schema_text

SCHEMA = Path(__file__).parents[2] / "docs" / "scenario.schema.json"

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "id": "7c1e55aa0b12",
    "title": "GET /boot fails with error at api>http:GET:ratings/titles/*",
    "request_class": {
        "name": "GET /boot",
        "service": "api",
        "predicate": [{"feature": "method", "value": "GET"}, {"feature": "path", "value": "/boot"}],
    },
    "request": {
        "method": "GET",
        "path": "/boot",
        "query": "view=compact&q=*",
        "headers": {"accept": "application/json", "x-device-type": "tv"},
    },
    "faults": ["error@api>http:GET:ratings/titles/*"],
    "delay": 3.0,
    "expect": {"status": [200], "max_seconds": 1.5},
    "seen": {"error_code": "http_503", "seconds": 0.12, "control": {"devices": 9, "failures": 0}},
    "lineage": {
        "expected": [{"call": "api>http:GET:ratings/titles/*", "callee": "ratings"}],
        "observed": [{"call": "api>http:GET:ratings/titles/*", "failed": True, "fired": ["error"]}],
    },
    "evidence": {"finding": "7c1e55aa0b12", "traces": ["0" * 31 + "1"]},
    "environment": {"ldfi": "0.1.0", "found": "2026-11-21T12:00:00Z"},
}


ASKED = {"method": "GET", "path": "/"}


def changed(**parts: Any) -> dict[str, Any]:
    return {**DOCUMENT, **parts}


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(of_document(DOCUMENT).to_yaml())

    assert yaml.safe_load(file.read_text()) == DOCUMENT
    assert read(file) == of_document(DOCUMENT)
    assert file.read_text() == read(file).to_yaml()


def test_the_file_stands_in_one_order_whatever_order_it_was_given_in() -> None:
    backwards = dict(reversed(DOCUMENT.items()))

    assert of_document(backwards).to_yaml() == of_document(DOCUMENT).to_yaml()
    assert of_document(DOCUMENT).to_yaml().splitlines()[1:3] == ["version: 1", "id: 7c1e55aa0b12"]


def test_the_published_schema_is_in_step() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text(), (
        "run: ldfi scenario schema > docs/scenario.schema.json"
    )


def test_the_schema_is_one_and_takes_what_we_take() -> None:
    Draft202012Validator.check_schema(schema())
    validator = Draft202012Validator(schema())

    validator.validate(json.loads(json.dumps(of_document(DOCUMENT).to_json())))
    assert not validator.is_valid(changed(surprise=1))


def test_what_it_says_for_programs() -> None:
    scenario = of_document(DOCUMENT)
    expected, observed = scenario.lineage.outlines()

    assert scenario.injected() == (Fault("api>http:GET:ratings/titles/*", "error"),)
    assert scenario.request.target == "/boot?view=compact&q=*"
    assert scenario.request.holes
    assert expected == [Outline("api>http:GET:ratings/titles/*", callee="ratings")]
    assert [call.ending for call in observed] == ["error injected"]
    assert scenario.request_class.meant().holds({"method": "GET", "path": "/boot"})


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([], "as a whole"),
        (changed(version=2), "of version 2; this ldfi reads version 1"),
        (changed(surprise=1), "surprise"),
        (changed(faults=[]), "faults"),
        (changed(faults=["ratings"]), "is not a fault"),
        (changed(faults=["error@a>function:b", "delay@a>function:b"]), "two faults at one point"),
        (changed(faults=["error@a>http:GET:b/alice@example.com"]), "url.template"),
        (changed(title="alice@example.com"), "form of a secret"),
        (changed(request={**ASKED, "headers": {"authorization": "Bearer x"}}), "request.headers"),
        (changed(request={**ASKED, "headers": {"accept": "Bearer abc"}}), "form of a secret"),
        (changed(request={**ASKED, "path": "/t/eyJhbGciOiJIUzI1NiJ9.x.y"}), "form of a secret"),
        (changed(request={**ASKED, "query": "q=alice@example.com"}), "form of a secret"),
        (changed(request={**ASKED, "body": {"a": ["sk_live_0123456789"]}}), "form of a secret"),
        (changed(request={**ASKED, "path": "boot"}), "request.path"),
        (changed(seen={"error_code": "4111 1111 1111 1111"}), "form of a secret"),
        (changed(expect={"body_matches": "("}), "no regular expression"),
        (changed(evidence={"traces": ["x"]}), "evidence.traces"),
    ],
)
def test_what_cannot_be_a_scenario_is_refused(document: object, says: str) -> None:
    with pytest.raises(InvalidScenario, match=says.replace(".", r"\.")):
        of_document(document, "s.yaml")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("a: [")

    for name in ("s.yaml", "none.yaml"):
        with pytest.raises(InvalidScenario, match=f"{name} cannot be read"):
            read(tmp_path / name)


def test_the_same_point_has_no_name_where_it_has_the_form_of_a_secret() -> None:
    from ldfi.scenarios.scenario import calls

    (call,) = calls([Outline("a>http:GET:b/x/alice@example.com/y")])

    assert call.call == "a>http:GET:b/x/*/y"
    assert isinstance(of_document(DOCUMENT), Scenario)


POINT = "api>http:GET:ratings/titles/*"


def test_a_replay_draws_the_lengths_that_every_replay_of_it_draws() -> None:
    keys = Keys.parse("k:0123456789abcdef")
    document = {**DOCUMENT, "faults": [f"delay:0.5..3@{POINT}"], "delay": 3.0}

    def lengths() -> list[int]:
        scenario, found = of_document(document), []
        for number in range(20):
            signed = context_of(scenario, "d", keys, 200, number, faulty=True)
            injection = decode(keys, signed, now=100).at(POINT)
            assert injection is not None
            found.append(injection.delay_ms)
        return found

    drawn = lengths()
    assert drawn == lengths()
    assert len(set(drawn)) > 10
    assert all(500 <= each <= 3000 for each in drawn)


def test_a_scenario_draws_nothing_above_its_delay() -> None:
    with pytest.raises(InvalidScenario, match=r"lengths of 3\.001 s are drawn, above delay"):
        of_document({**DOCUMENT, "faults": [f"delay:0.5..3.001@{POINT}"], "delay": 3.0})
