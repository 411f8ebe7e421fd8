"""Prometheus's configuration and alert rules, checked by its own tool and against our metrics."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from ldfi.experiments.api.metrics import METRICS
from tests.deploy.programs import DEPLOY, promtool

pytestmark = pytest.mark.servers

FOLDER = DEPLOY / "prometheus"


def check(*words: str | Path) -> None:
    done = subprocess.run([promtool(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_configuration_is_valid(tmp_path: Path) -> None:
    # Given a copy whose token is where this machine can have one
    token = tmp_path / "token"
    token.write_text("metrics-0123456789abcdef")
    text = (FOLDER / "prometheus.yml").read_text()
    assert "/run/secrets/metrics_token" in text
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/metrics_token", str(token)))
    (tmp_path / "rules.yml").write_text((FOLDER / "rules.yml").read_text())

    check("check", "config", tmp_path / "prometheus.yml")


def test_every_rule_is_silent_and_fires_as_it_should() -> None:
    check("test", "rules", FOLDER / "rules_test.yml")


def test_every_rule_has_a_test_and_asks_for_metrics_that_there_are() -> None:
    rules = yaml.safe_load((FOLDER / "rules.yml").read_text())["groups"][0]["rules"]
    tested = yaml.safe_load((FOLDER / "rules_test.yml").read_text())["tests"]
    assert [rule["alert"] for rule in rules] == [test["name"] for test in tested]

    described = METRICS
    known = {m.name for m in described} | {
        f"{m.name}_bucket" for m in described if m.type == "histogram"
    }
    for rule in rules:
        asked = set(re.findall(r"\bldfi_\w+", rule["expr"]))
        assert asked <= known, rule["alert"]
        assert asked or rule["alert"] == "LdfiDown"
