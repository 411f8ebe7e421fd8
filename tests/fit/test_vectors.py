"""The language-neutral test vectors, which every reader of failure contexts has to pass."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ldfi.fit.context import Injection, decode, point_hash
from ldfi.fit.errors import ContextError, KeyFormatError
from ldfi.fit.keys import Keys
from ldfi.fit.points import (
    Point,
    address,
    authority,
    database_point,
    http_point,
    message_point,
    rpc_point,
)
from ldfi.kinds import FAMILIES, family

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "ldfi" / "fit" / "vectors"


def vectors(file: str, which: str) -> list[Any]:
    listed = json.loads((VECTORS / file).read_text(encoding="utf-8"))[which]
    assert listed
    return list(listed)


@pytest.mark.parametrize("case", vectors("contexts.json", "cases"), ids=lambda case: case["name"])
def test_contexts(case: dict[str, Any]) -> None:
    assert read(case) == (case["result"], case.get("context"))


def read(case: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    try:
        context = decode(Keys.parse(case["keys"]), case["value"], case["now"])
    except ContextError as error:
        return error.reason, None
    faults = [
        {"hash": point, "kind": do.kind, "delay_ms": do.delay_ms, "first": do.first}
        for point, do in sorted(context.injections.items())
    ]
    return "accepted", {
        "experiment": context.experiment,
        "arm": context.arm,
        "expires": context.expires,
        "faults": faults,
    }


@pytest.mark.parametrize("keys", vectors("contexts.json", "readable_keys"), ids=str)
def test_readable_keys(keys: dict[str, Any]) -> None:
    parsed = Keys.parse(keys["text"])

    assert parsed.signing_id == keys["signing"]
    assert list(parsed.secrets) == keys["ids"]


@pytest.mark.parametrize("text", vectors("contexts.json", "unreadable_keys"))
def test_unreadable_keys(text: str) -> None:
    with pytest.raises(KeyFormatError):
        Keys.parse(text)


@pytest.mark.parametrize("case", vectors("points.json", "http"), ids=str)
def test_names_of_http_calls(case: dict[str, Any]) -> None:
    name = http_point(
        case["caller"], case["method"], case["host"], case["port"], case["path"], case["template"]
    )

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "rpc"), ids=str)
def test_names_of_procedure_calls(case: dict[str, str]) -> None:
    name = rpc_point(case["caller"], case["method"], authority(case["peer"]))

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "db"), ids=str)
def test_names_of_statements(case: dict[str, str]) -> None:
    name = database_point(case["caller"], case["statement"], case["peer"])

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "connect"), ids=str)
def test_names_of_connections(case: dict[str, str]) -> None:
    name = str(Point(case["caller"], "db", "connect", case["peer"]))

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "command"), ids=str)
def test_names_of_commands_to_redis(case: dict[str, Any]) -> None:
    peer = address(case["host"], case["port"])
    name = database_point(case["caller"], case["command"], peer)

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "message"), ids=str)
def test_names_of_messages(case: dict[str, str]) -> None:
    given = [case[part] for part in ("caller", "operation", "system", "destination")]
    name = message_point(*given)

    assert (name, point_hash(name)) == (case["name"], case["hash"])


@pytest.mark.parametrize("case", vectors("points.json", "hashes"), ids=str)
def test_hashes_of_names(case: dict[str, str]) -> None:
    assert point_hash(case["name"]) == case["hash"]


def test_every_result_is_covered() -> None:
    results = {case["result"] for case in vectors("contexts.json", "cases")}

    assert results == {"accepted", "malformed", "forged", "expired"}


def test_the_vectors_know_every_word_that_kinds_begin_with() -> None:
    contexts = (case["context"] for case in vectors("contexts.json", "cases") if "context" in case)

    assert {family(fault["kind"]) for each in contexts for fault in each["faults"]} == {*FAMILIES}


def test_the_worked_examples_of_the_specification_verify() -> None:
    text = (ROOT / "docs" / "failure-context.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"^1\.k2\.\S+$", text, re.MULTILINE)
    (second,) = re.findall(r"^2\.k2\.\S+$", text, re.MULTILINE)
    of_second = decode(Keys.parse("k2:correct-horse-battery"), second, now=1000)
    refused = Injection("refused", first=2)
    assert of_second.at("api>http:GET:ratings/titles/*") == refused

    context = decode(Keys.parse("k2:correct-horse-battery"), example, now=1000)

    assert context.at("api>http:GET:ratings/titles/*") == Injection("error", first=2)
    assert f"'{example.rpartition('.')[0]}'" in text
