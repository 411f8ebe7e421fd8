"""The language-neutral test vectors, which every reader of failure contexts has to pass."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ldfi.fit.protocol.context import Injection, decode, point_hash
from ldfi.fit.protocol.errors import KeyFormatError
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import FAMILIES, family
from tests.fit.conformance_host import decoded, named

ROOT = Path(__file__).parents[2]
VECTORS = ROOT / "ldfi" / "fit" / "protocol" / "vectors"


def vectors(file: str, which: str) -> list[Any]:
    listed = json.loads((VECTORS / file).read_text(encoding="utf-8"))[which]
    assert listed
    return list(listed)


@pytest.mark.parametrize("case", vectors("contexts.json", "cases"), ids=lambda case: case["name"])
def test_contexts(case: dict[str, Any]) -> None:
    found = decoded(case)
    if "context" in found:
        found["context"]["faults"].sort(key=lambda fault: fault["hash"])
    expected = {key: case[key] for key in ("result", "context") if key in case}
    assert found == expected


@pytest.mark.parametrize("keys", vectors("contexts.json", "readable_keys"), ids=str)
def test_readable_keys(keys: dict[str, Any]) -> None:
    parsed = Keys.parse(keys["text"])

    assert parsed.signing_id == keys["signing"]
    assert list(parsed.secrets) == keys["ids"]


@pytest.mark.parametrize("text", vectors("contexts.json", "unreadable_keys"))
def test_unreadable_keys(text: str) -> None:
    with pytest.raises(KeyFormatError):
        Keys.parse(text)


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (kind, case)
        for kind in ("http", "rpc", "db", "connect", "command", "message")
        for case in vectors("points.json", kind)
    ],
    ids=str,
)
def test_names_of_calls(kind: str, case: dict[str, Any]) -> None:
    assert named({**case, "kind": kind}) == {"name": case["name"], "hash": case["hash"]}


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
