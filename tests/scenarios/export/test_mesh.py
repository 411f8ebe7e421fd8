"""What of a fault can be injected from outside, and the filter that is put in once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from ldfi.errors import NotExpressible
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.points import MAX_NAME_LENGTH
from ldfi.scenarios.export.mesh import proxy_faults

pytestmark = pytest.mark.servers


def ldfi(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ldfi.cli", "export", *words],
        env={**os.environ, "COLUMNS": "300"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("faults", "delay_ms", "why"),
    [
        (["error:2@api>http:GET:ratings/"], 1000, "does not count"),
        (["error@api>db:SELECT:recordsdb/marks"], 1000, "kind 'db'"),
        (["error@api>cache:get:home"], 1000, "kind 'cache'"),
        (["refused@api>http:GET:a/"], 1000, "kind refused, which is not exported"),
        (["unresolved@api>http:GET:a/"], 1000, "kind unresolved, which is not exported"),
        (["error@api>http:GET:a/", "status:500@api>http:GET:a/b"], 1000, "kind status:500"),
        (["delay:0.5..2@api>http:GET:a/"], 3000, "draws another length for each request"),
        (["slow:2@api>http:GET:a/"], 3000, "body that comes slowly"),
        (["slow:0.5..2@api>http:GET:a/"], 3000, "body that comes slowly"),
        (["error@anything"], 1000, "kind 'function'"),
        (["error@api>http:GET:a/", "error@api>http:GET:b/"], 1000, "one upstream"),
        (["error@api>http:GET:a/", "error@web>http:GET:a/"], 1000, "one caller"),
        (["error@api>http:GET:a/", "delay@api>http:GET:a/"], 1000, "one fault a point"),
        ([("error@api>http:GET:a/" + "x" * 300)[: MAX_NAME_LENGTH + 6]], 1000, "was cut"),
        (["delay@api>http:GET:a/"], 0, "delay of 0 ms"),
        (["delay@api>http:GET:a/"], 10_000_000, "delay of 10000000 ms"),
    ],
)
def test_what_cannot_be_expressed_is_refused(faults: list[str], delay_ms: int, why: str) -> None:
    with pytest.raises(NotExpressible, match=why):
        proxy_faults([Fault.parse(fault) for fault in faults], delay_ms)


def test_envoy_gets_one_filter_and_one_cluster() -> None:
    words = ["envoy", "--caller", "api", "--processor", "proxy.shop:9002"]
    written, machine = ldfi(*words), ldfi(*words, "--json")

    document = json.loads(machine.stdout)
    assert yaml.safe_load(written.stdout) == document["config"]
    (http_filter,) = document["config"]["http_filters"]
    (cluster,) = document["config"]["clusters"]
    assert http_filter["typed_config"]["extension_config"]["name"] == "envoy.filters.http.composite"
    (matcher,) = http_filter["typed_config"]["xds_matcher"]["matcher_list"]["matchers"]
    (action,) = matcher["on_match"].values()
    settings = action["typed_config"]["typed_config"]["typed_config"]
    assert settings["failure_mode_allow"] is True
    assert settings["message_timeout"] == "0.050s"
    assert settings["grpc_service"]["initial_metadata"] == [
        {"key": "x-ldfi-caller", "value": "api"}
    ]
    (endpoints,) = cluster["load_assignment"]["endpoints"]
    (endpoint,) = endpoints["lb_endpoints"]
    address = endpoint["endpoint"]["address"]["socket_address"]
    assert address == {"address": "proxy.shop", "port_value": 9002}


def test_istio_gets_the_same_filter_for_the_callers_pods() -> None:
    envoy = json.loads(ldfi("envoy", "--caller", "Shop_API", "--json").stdout)["config"]
    words = ["--caller", "Shop_API", "--namespace", "shop", "--json"]
    istio = json.loads(ldfi("istio", *words, "--source", "role=gateway").stdout)["config"]

    assert (istio["kind"], istio["metadata"]) == (
        "EnvoyFilter",
        {"name": "ldfi-shop-api", "namespace": "shop"},
    )
    assert istio["spec"]["workloadSelector"] == {"labels": {"role": "gateway"}}
    patches = {each["applyTo"]: each["patch"] for each in istio["spec"]["configPatches"]}
    assert patches["HTTP_FILTER"]["value"] == envoy["http_filters"][0]
    assert patches["CLUSTER"]["value"] == envoy["clusters"][0]


def test_at_a_gateway_what_the_edge_says_takes_the_place_of_what_came_in() -> None:
    envoy = json.loads(ldfi("envoy", "--edge", "--json").stdout)["config"]
    istio = json.loads(ldfi("istio", "--edge", "--json").stdout)["config"]["spec"]

    names = [each["name"] for each in envoy["http_filters"]]
    assert names == ["ldfi-outside", "ldfi-edge", "ldfi-inside"]
    assert istio["workloadSelector"] == {"labels": {"istio": "ingressgateway"}}
    assert {each["match"]["context"] for each in istio["configPatches"]} == {"GATEWAY"}
    made = [each["patch"]["value"] for each in istio["configPatches"]]
    assert made == [*envoy["http_filters"], *envoy["clusters"]]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["envoy", "--caller", "api", "--processor", "nowhere"], "no HOST:PORT"),
        (["envoy", "--caller", "api", "--processor", "a:99999"], "no HOST:PORT"),
        (["istio", "--caller", "api", "--source", "gateway"], "no label"),
        (["istio"], "--caller"),
        (["envoy", "--edge", "--caller", "api"], "not both"),
    ],
)
def test_misuse_is_told(words: list[str], why: str) -> None:
    done = ldfi(*words)

    assert (done.returncode, done.stdout) == (2, "")
    assert why in done.stderr
