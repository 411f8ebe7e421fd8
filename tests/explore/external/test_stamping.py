"""What a test's requests carry, what services are told, and what a good answer is."""

from __future__ import annotations

import json
import shlex
import time
from urllib.parse import unquote

import pytest
import yaml

from ldfi.errors import Invalid
from ldfi.explore.external import environment
from ldfi.explore.external.assertions import AnswerAssertion, InvalidAssertion
from ldfi.explore.external.stamp import DEVICE, SharedKeys, Stamp
from ldfi.fit import baggage
from ldfi.fit.protocol.context import decode
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.scenario import admits

KEYS = SharedKeys("k:0123456789abcdef0123456789abcdef")
FAULT = Fault("page>http:GET:store/price/*", "delay")


@pytest.mark.parametrize("device", [None, "mine"])
def test_an_edge_lets_it_in_and_a_service_obeys_it(device: str | None) -> None:
    headers = Stamp(KEYS.keys, [FAULT], 2.5).headers("a" * 32, "b" * 16, device, "fit=forged,x=1")

    (value,) = baggage.values(headers["baggage"])
    context = decode(KEYS.keys, value, time.time())
    assert admits(context, headers["x-device-id"])
    assert headers["x-device-id"] == (device or DEVICE)
    assert context.arm == "treatment"
    found = context.at(FAULT.point)
    assert found is not None
    assert found.delay_ms == 2500
    assert headers["traceparent"] == f"00-{'a' * 32}-{'b' * 16}-01"
    assert headers["baggage"].endswith(",x=1")


def test_all_requests_of_all_runs_with_the_same_faults_hang_alike() -> None:
    faults = [Fault(FAULT.point, "delay:0.5..2"), Fault("page>function:f", "error")]
    runs = [Stamp(KEYS.keys, given, 2.5) for given in (faults, faults[::-1], faults[:1])]
    found = [
        decode(KEYS.keys, run.context(), time.time()).at(FAULT.point)
        for run in runs
        for _ in range(2)
    ]
    assert found[0] is not None
    assert 500 <= found[0].delay_ms <= 2000
    assert found[:4] == [found[0]] * 4
    assert found[4] == found[5] != found[0], "another set of faults draws for itself"


def test_whoever_has_the_keys_has_the_token_and_it_shows_nothing_of_them() -> None:
    assert KEYS.token == SharedKeys(KEYS.text).token
    assert KEYS.token != SharedKeys(KEYS.text + "0").token
    assert KEYS.token not in KEYS.text
    assert "0123456789" not in repr(KEYS)


def test_keys_of_the_environment_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIT_KEYS", KEYS.text)
    assert SharedKeys.of_environment() == KEYS
    monkeypatch.setenv("FIT_KEYS", "short")
    with pytest.raises(Invalid, match="FIT_KEYS"):
        SharedKeys.of_environment()
    monkeypatch.delenv("FIT_KEYS")
    assert SharedKeys.of_environment() != SharedKeys.of_environment()


def test_the_block_is_the_same_in_everybodys_words() -> None:
    block = environment.variables(KEYS, "http://127.0.0.1:4318")

    lines = [shlex.split(line)[1] for line in environment.as_shell(block).splitlines()]
    assert dict(line.split("=", 1) for line in lines) == block
    assert yaml.safe_load(environment.as_compose(block))["environment"] == block
    listed = yaml.safe_load(environment.as_kubernetes(block))["env"]
    assert {each["name"]: each["value"] for each in listed} == block
    header = unquote(block["OTEL_EXPORTER_OTLP_HEADERS"])
    assert header == f"authorization=Bearer {KEYS.token}"


def test_how_often_services_export_is_read_where_they_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "250")
    assert environment.export_interval() == 0.25
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "soon")
    assert environment.export_interval(2.0) == 2.0


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("status==200", True),
        ("status<400", True),
        ("status != 200", False),
        ("json.items", True),
        ("json.none", False),
        ("json.empty", False),
        ("json.zero==0", True),
        ("json.items.1==b", True),
        ("json.items.2", False),
        ("json.deep.er>=3", True),
        ("json.deep.er>x", False),
    ],
)
def test_assertions(text: str, holds: bool) -> None:
    answer = {"items": ["a", "b"], "empty": [], "zero": 0, "deep": {"er": 3}}
    assert AnswerAssertion.parse(text).holds(200, json.dumps(answer).encode()) is holds


@pytest.mark.parametrize("text", ["status", "items", "json", "json.", "status=200", ""])
def test_assertions_that_say_nothing(text: str) -> None:
    with pytest.raises(InvalidAssertion, match="write status==200"):
        AnswerAssertion.parse(text)


def test_what_is_no_json_has_nothing() -> None:
    assert not AnswerAssertion.parse("json.items").holds(200, b"<html>")
