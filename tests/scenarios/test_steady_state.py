"""What a Chaos Toolkit experiment says of a good answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ldfi.cli.replay_traffic import read
from ldfi.errors import InvalidReplay
from ldfi.scenarios.replay import ANYTHING, Assertion, Exemplar
from ldfi.scenarios.steady_state import assertion_for, steady_state

ANY = range(100, 600)


def probe(tolerance: Any, url: str = "${gateway}/boot?a=b", **provider: Any) -> dict[str, Any]:
    return {
        "type": "probe",
        "name": "p",
        "tolerance": tolerance,
        "provider": {"type": "http", "url": url, **provider},
    }


def experiment(*probes: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": "t",
        "steady-state-hypothesis": {"title": "s", "probes": list(probes)},
        "method": [],
    }


def written(folder: Path, *probes: dict[str, Any]) -> Path:
    file = folder / "experiment.json"
    file.write_text(json.dumps(experiment(*probes)))
    return file


@pytest.mark.parametrize(
    ("tolerance", "assertion"),
    [
        (200, Assertion(status=(200,))),
        ([200, 204], Assertion(status=(200, 204))),
        (
            {"type": "range", "target": "status", "range": [200, 299]},
            Assertion(status=range(200, 300)),
        ),
        (
            {"type": "regex", "target": "body", "pattern": "ro+ws"},
            Assertion(status=ANY, body_matches="ro+ws"),
        ),
        (
            {"type": "jsonpath", "target": "body", "path": "$.rows"},
            Assertion(status=ANY, json_path="$.rows", equals=ANYTHING),
        ),
        (
            {"type": "jsonpath", "target": "body", "path": "$.rows", "expect": [3]},
            Assertion(status=ANY, json_path="$.rows", equals=3),
        ),
    ],
)
def test_tolerances_become_assertions(tolerance: Any, assertion: Assertion) -> None:
    headers = {"x-a": "1"}

    found = steady_state(experiment(probe(tolerance, method="head", headers=headers)), "e")

    assert found == [(Exemplar("HEAD", "/boot", "a=b", headers), assertion)]


def test_probes_of_one_request_hold_together() -> None:
    body = {"type": "jsonpath", "target": "body", "path": "$.rows", "expect": 3}

    ((_, assertion),) = steady_state(experiment(probe([200, 204]), probe(body)), "e")

    assert assertion == Assertion(status=(200, 204), json_path="$.rows", equals=3)
    assert assertion.failure(200, '{"rows": 3}', 0.1) is None
    assert assertion.failure(503, '{"rows": 3}', 0.1) == "status-503"
    assert assertion.failure(200, '{"rows": 4}', 0.1) == "json-path"


@pytest.mark.parametrize(
    ("probes", "says"),
    [
        ([], "nothing to assert"),
        ([{"provider": {"type": "python"}, "tolerance": True}], "of type http"),
        ([probe(True)], "cannot be asserted"),
        ([probe({"type": "probe", "provider": {}})], "cannot be asserted"),
        (
            [probe({"type": "jsonpath", "target": "body", "path": "$.a", "count": 2})],
            "cannot be asserted",
        ),
        ([probe(200, "ftp://a/b")], "no URL of http"),
        ([probe(200), probe(503)], "contradicts"),
        (
            [
                probe({"type": "regex", "target": "body", "pattern": "a"}),
                probe({"type": "regex", "target": "body", "pattern": "b"}),
            ],
            "body_matches is asserted twice",
        ),
    ],
)
def test_what_says_nothing_of_one_answer_is_refused(
    probes: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(InvalidReplay, match=says):
        steady_state(experiment(*probes), "e")


def test_the_probe_of_a_path_speaks_for_it(tmp_path: Path) -> None:
    two = written(tmp_path, probe(200), probe(204, "http://a:80/other"))

    assert assertion_for(two, "/other") == Assertion(status=(204,))
    with pytest.raises(InvalidReplay, match="/boot, /other: which of them"):
        assertion_for(two, "/play")
    assert assertion_for(written(tmp_path, probe(200)), "/play") == Assertion(status=(200,))


def test_replayed_traffic_takes_it_as_its_file(tmp_path: Path) -> None:
    exemplars, assertion, _ = read(written(tmp_path, probe(200), probe(200, "http://a/other")))

    assert [each.path for each in exemplars] == ["/boot", "/other"]
    assert assertion == Assertion(status=(200,))
    with pytest.raises(InvalidReplay, match="split the file"):
        read(written(tmp_path, probe(200), probe(204, "http://a/other")))


def test_a_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1")

    with pytest.raises(InvalidReplay, match="is not a Chaos Toolkit experiment"):
        assertion_for(tmp_path / "a.yaml", "/")
    with pytest.raises(InvalidReplay, match="cannot be read"):
        assertion_for(tmp_path / "b.yaml", "/")
