"""What a mesh is asked to match, and what is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.errors import NotExpressible
from ldfi.experiments.export.mesh import WARNINGS, proxy_faults
from ldfi.fit.context import Arm, encode, point_hash
from ldfi.fit.faults import MAX_FIRST, Fault
from ldfi.fit.keys import Keys
from ldfi.fit.points import MAX_NAME_LENGTH
from ldfi.kinds import UsualKind

KEYS = Keys.parse("k1:0123456789abcdef")
TITLES = "error@api>http:GET:ratings/titles/*"
HOST = "ratings.shop.svc.cluster.local"
POINTS = [f"api>http:GET:ratings/p{i}/*" for i in range(4)]


def ldfi(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ldfi.experiments.cli", "export", *words],
        env={**os.environ, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


faults = st.builds(
    Fault,
    point=st.sampled_from(POINTS),
    kind=st.sampled_from(["error", "delay"]),
    first=st.sampled_from([0, 0, 0, 1, MAX_FIRST]),
)


@given(
    st.lists(faults, unique_by=lambda f: f.point),
    st.sampled_from(["treatment", "control"]),
    st.sampled_from([1, 10, 1000, 9_999_999]),
    st.sampled_from(["", "a=b,", "fit2=1.2, "]),
    st.sampled_from(["", ",c=d", ";p=1,c=d"]),
    st.sampled_from(POINTS),
    st.sampled_from(["error", "delay"]),
)
def test_the_expression_matches_contexts_with_just_this_fault_in_treatment(
    carried: list[Fault],
    arm: Arm,
    delay_ms: int,
    before: str,
    after: str,
    point: str,
    kind: UsualKind,
) -> None:
    wanted = Fault(point, kind)
    value = encode(KEYS, "e-7_c1", arm, int(time.time()) + 5, carried, delay_ms=delay_ms)
    (found,) = proxy_faults([wanted], 1000)

    matches = re.fullmatch(found.baggage, f"{before}fit={value}{after}", re.ASCII) is not None

    same_delay = kind == "error" or delay_ms == 1000
    assert matches == (arm == "treatment" and wanted in carried and same_delay)


@pytest.mark.parametrize(
    ("point", "yes", "no"),
    [
        ("a>http:GET:b/", ["/"], ["", "/x"]),
        ("a>http:GET:b", ["/"], ["/x"]),
        ("a>http:GET:b/t/*/s", ["/t/1/s", "/t/a.b/s"], ["/t//s", "/t/1/s/", "/t/1/2/s"]),
        ("a>http:GET:b/f/*.json", ["/f/1.json"], ["/f/1xjson", "/f/1/2.json"]),
        ("a>http:GET:b/a.b+c(d)/", ["/a.b+c(d)/"], ["/axb+c(d)/", "/a.bbc(d)/"]),
        ("a>rpc:Get:/shop.Prices", ["/shop.Prices/Get"], ["/shopxPrices/Get", "/shop.Prices"]),
    ],
)
def test_routes(point: str, yes: list[str], no: list[str]) -> None:
    (found,) = proxy_faults([Fault(point, "error")], 1000)

    assert all(re.fullmatch(found.path, path) for path in yes)
    assert not any(re.fullmatch(found.path, path) for path in no)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["error:2@api>http:GET:ratings/"], "does not count"),
        (["error@api>db:SELECT:recordsdb/marks"], "kind 'db'"),
        (["error@api>cache:get:home"], "kind 'cache'"),
        (["refused@api>http:GET:a/"], "kind refused, which is not exported"),
        (["error@api>http:GET:a/", "status:500@api>http:GET:a/b"], "kind status:500"),
        (["error@anything"], "kind 'function'"),
        (["error@api>http:GET:a/", "error@api>http:GET:b/"], "one upstream"),
        (["error@api>http:GET:a/", "error@web>http:GET:a/"], "one caller"),
        (["error@api>http:GET:a/", "delay@api>http:GET:a/"], "one fault a point"),
        ([("error@api>http:GET:a/" + "x" * MAX_NAME_LENGTH)[: MAX_NAME_LENGTH + 6]], "was cut"),
        (["delay@api>http:GET:a/", "--delay", "0"], "delay of 0 ms"),
        (["delay@api>http:GET:a/", "--delay", "10000"], "delay of 10000000 ms"),
        (["delay@api>http:GET:a/", "--delay", "nan"], "NaN"),
        (["explode@api>http:GET:a/"], "no kind of fault"),
    ],
)
@pytest.mark.parametrize("target", [["envoy", "--cluster", "a"], ["istio", "--host", "a"]])
def test_what_cannot_be_expressed_is_refused(target: list[str], words: list[str], why: str) -> None:
    done = ldfi(*target, *words)

    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_refusals_are_ours() -> None:
    with pytest.raises(NotExpressible):
        proxy_faults([Fault("a>http:GET:b/", "error", 1)], 1000)


@pytest.mark.parametrize("target", [["envoy", "--cluster", "a"], ["istio", "--host", "a"]])
def test_warnings_are_loud_and_stay_with_the_configuration(target: list[str]) -> None:
    written, machine = ldfi(*target, TITLES), ldfi(*target, TITLES, "--json")

    assert (written.returncode, machine.returncode) == (0, 0)
    document = json.loads(machine.stdout)
    assert document["target"] == target[0]
    assert yaml.safe_load(written.stdout) == document["config"]
    assert "&id" not in written.stdout
    assert set(WARNINGS) < set(document["warnings"])
    for warning in document["warnings"]:
        assert f"# {warning}\n" in written.stdout
        assert warning in written.stderr
        assert warning in machine.stderr


def test_istio_has_a_route_for_each_fault_and_one_for_all_else() -> None:
    later = "delay@api>http:POST:ratings/titles/*/similar"
    rpc = "error@api>rpc:Get:/shop.Prices"
    words = ["istio", "--host", HOST, "--namespace", "shop", "--delay", "1.5", "--json"]

    def resource(*faults: str) -> dict[str, Any]:
        return dict(json.loads(ldfi(*words, *faults).stdout)["config"])

    config = resource(TITLES, later)
    error, delay, rest = config["spec"]["http"]

    assert (config["apiVersion"], config["kind"]) == ("networking.istio.io/v1", "VirtualService")
    assert re.fullmatch("ldfi-[0-9a-f]{8}", config["metadata"]["name"])
    assert config["metadata"]["namespace"] == "shop"
    assert config["spec"]["hosts"] == [HOST]
    to = [{"destination": {"host": HOST}}]
    assert [error["route"], delay["route"], rest] == [to, to, {"route": to}]
    assert error["fault"] == {"abort": {"percentage": {"value": 100}, "httpStatus": 503}}
    assert delay["fault"] == {"delay": {"percentage": {"value": 100}, "fixedDelay": "1.500s"}}
    (match,) = error["match"]
    assert match["sourceLabels"] == {"app": "api"}
    assert match["method"] == {"exact": "GET"}
    assert match["uri"] == {"regex": "/titles/[^/?]+"}
    assert point_hash("api>http:GET:ratings/titles/*") in match["headers"]["baggage"]["regex"]
    abort = resource(rpc)["spec"]["http"][0]["fault"]["abort"]
    assert abort == {"percentage": {"value": 100}, "grpcStatus": "UNAVAILABLE"}


def test_the_label_of_the_callers_can_be_given() -> None:
    done = ldfi("istio", TITLES, "--host", HOST, "--source", "role=gateway", "--json")
    wrong = ldfi("istio", TITLES, "--host", HOST, "--source", "gateway")

    route = json.loads(done.stdout)["config"]["spec"]["http"][0]
    assert route["match"][0]["sourceLabels"] == {"role": "gateway"}
    assert wrong.returncode == 2
    assert "no label" in wrong.stderr
