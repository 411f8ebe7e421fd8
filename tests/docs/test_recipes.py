"""The recipes for pipelines: they parse, and ask for what there is.

(That the commands in them exist is held by ``test_site`` for every page.)
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from ldfi.experiments.api.app import create_app
from ldfi.experiments.cluster.service import Service
from ldfi.experiments.cluster.tokens import Tokens
from tests.docs.test_site import DOCS, blocks

PAGE = DOCS / "howto" / "upgrade-gate.md"
TEXT = PAGE.read_text(encoding="utf-8")


def manifests() -> Iterator[dict[str, Any]]:
    for text in blocks(PAGE, "yaml"):
        yield from yaml.safe_load_all(text)


def manifest(kind: str) -> dict[str, Any]:
    (found,) = (each for each in manifests() if each["kind"] == kind)
    return found


@pytest.mark.parametrize("script", list(blocks(PAGE, "sh")), ids=("database", "pods", "drain"))
def test_scripts_are_in_the_language_of_the_shell(script: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-n"], input=script, text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "set -eu" in script
    assert "ldfi maintenance gate" in script


def test_a_hook_runs_a_command_that_there_is() -> None:
    (container,) = manifest("Job")["spec"]["template"]["spec"]["containers"]
    assert f"ldfi {' '.join(container['command'][1:4])}" == "ldfi maintenance gate --down"
    assert {each["name"] for each in container["env"]} == {"LDFI_URL", "LDFI_TOKEN"}
    assert manifest("Job")["spec"]["backoffLimit"] == 0
    assert manifest("StatefulSet")["spec"]["updateStrategy"] == {"type": "OnDelete"}


def test_every_verdict_is_told_apart() -> None:
    (metric,) = manifest("AnalysisTemplate")["spec"]["metrics"]
    assert metric["provider"]["web"]["jsonPath"] == "{$.verdict}"
    assert metric["successCondition"] == 'result == "safe"'
    assert metric["failureCondition"] == 'result == "refused"'

    (pipeline,) = map(json.loads, blocks(PAGE, "json"))
    stages = {each["refId"]: each for each in pipeline["stages"]}
    assert stages["1"]["statusJsonPath"] == "$.verdict"
    assert (stages["1"]["successStatuses"], stages["1"]["terminalStatuses"]) == ("safe", "refused")
    needs = {refid: each.get("requisiteStageRefIds", []) for refid, each in stages.items()}
    assert needs == {"1": [], "2": ["1"], "3": ["2"], "4": ["3"]}


def test_every_path_is_one_of_the_api() -> None:
    app = create_app(Service(Tokens("viewer:0123456789abcdef0123"), "sqlite://"))
    known = app.openapi()["paths"]
    asked = re.findall(r"http://ldfi-api:8600(/api/v1[^\"?]*)", TEXT)
    assert len(asked) == 4
    for path in asked:
        assert re.sub(r"\$\{.*\}", "{window_id}", path) in known, path
