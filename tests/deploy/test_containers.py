"""The stand-ins for images, and what is said where containers cannot be run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from deploy.containers import project, standins
from deploy.containers.engine import engine
from deploy.containers.standins import FOLDER, LEFT_OUT, ROOT, StandIn
from deploy.containers.trial import PORTS
from deploy.stack.missing import Missing
from tests.deploy.programs import collector

pytestmark = pytest.mark.servers


def test_every_image_but_grafanas_has_a_stand_in_of_its_name() -> None:
    collector()
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    named = {each["image"] for name, each in services.items() if name not in LEFT_OUT}
    arguments = dict(re.findall(r"^ARG (\w+)=(\S+)", (ROOT / "Dockerfile").read_text(), re.M))
    made = {each.image for each in standins.all_of_them()}
    assert made == named - {"ldfi"} | {arguments["RUST"], standins.PYTHON}
    assert standins.PYTHON.partition(":")[0] == arguments["PYTHON"].partition(":")[0]
    assert services.keys() > LEFT_OUT


def test_it_looks_for_each_port_that_is_published() -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
    ports = {
        int(port.split(":")[1])
        for name, each in services.items()
        if name not in LEFT_OUT
        for port in each.get("ports", [])
    }
    assert set(PORTS) == ports


def test_a_stand_in_is_another_when_anything_of_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standins, "FOLDER", tmp_path)
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "Dockerfile").write_text("FROM one")
    first = StandIn("kafka", "kafka:1", "1").key("base")
    assert StandIn("kafka", "kafka:1", "1").key("base") == first
    keys = {
        first,
        StandIn("kafka", "kafka:1", "2").key("base"),
        StandIn("kafka", "kafka:1", "1").key("another base"),
    }
    (tmp_path / "kafka" / "Dockerfile").write_text("FROM two")
    keys.add(StandIn("kafka", "kafka:1", "1").key("base"))
    (tmp_path / "kafka" / "start").write_text("")
    keys.add(StandIn("kafka", "kafka:1", "1").key("base"))
    assert len(keys) == 5


def test_each_folder_is_of_a_stand_in() -> None:
    collector()
    folders = {each.name for each in FOLDER.iterdir() if (each / "Dockerfile").exists()}
    assert folders == {each.folder for each in standins.all_of_them()}


def test_without_podman_the_reason_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(Missing, match=r"podman, runc, iptables, debootstrap.*apt-get install"):
        engine()
    asked = subprocess.run(
        [sys.executable, "-m", "deploy.containers"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2
    assert "Containers are not run: no podman" in asked.stdout


def test_what_pip_is_told_of_indexes_goes_into_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://index.test/simple")
    monkeypatch.setenv("PIP_NO_INPUT", "1")
    told = "".join(project.pip_told())
    assert "index-url = https://index.test/simple\n" in told
    assert "input" not in told
