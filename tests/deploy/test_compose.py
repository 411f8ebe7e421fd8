"""compose.yaml: its schema, its files, its secrets; and the image that it builds."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from ldfi.cli.serve_processes import check_role
from ldfi.experiments.cluster.config import Config, variable
from ldfi.experiments.cluster.tokens import Tokens
from ldfi.fit.protocol.keys import Keys

pytestmark = pytest.mark.servers

ROOT = Path(__file__).parents[2]
SECRET = re.compile(r"PASSWORD|TOKEN|SECRET|KEY|DATABASE_URL")
OURS = ("ldfi", "scheduler", "ingest")
NAMED = re.compile(r"\$\{(\w+):\?[^}]+\}")


@pytest.fixture(scope="module")
def stack() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
    return loaded


@pytest.fixture(scope="module")
def example() -> dict[str, str]:
    lines = (ROOT / ".env.example").read_text().splitlines()
    pairs = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name: value for name, _, value in pairs}


def environments(stack: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (service, name, value)
        for service, what in stack["services"].items()
        for name, value in what.get("environment", {}).items()
    ]


def test_it_fits_the_compose_specification() -> None:
    words = ["--builtin-schema", "vendor.compose-spec", str(ROOT / "compose.yaml")]
    checked = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout


def test_no_secret_is_in_it_and_every_one_must_be_given(stack: dict[str, Any]) -> None:
    for service, name, value in environments(stack):
        if SECRET.search(name):
            assert NAMED.fullmatch(value), (service, name)
    text = (ROOT / "compose.yaml").read_text()
    assert not re.search(r"\$\{\w+\}|\$\{\w+:-", text), (
        "a variable without a value must be an error"
    )


def test_the_example_gives_every_variable_and_each_is_usable(
    stack: dict[str, Any], example: dict[str, str]
) -> None:
    wanted = {match[1] for match in NAMED.finditer((ROOT / "compose.yaml").read_text())}
    wanted |= {secret["environment"] for secret in stack["secrets"].values()}
    assert wanted <= set(example)
    assert set(example) - wanted == {"LDFI_ADMIN_TOKEN"}  # for the command line

    tokens = Tokens(example["LDFI_TOKENS"])
    for role in ("admin", "edge", "ingest", "metrics"):
        caller = tokens.known(example[f"LDFI_{role.upper()}_TOKEN"])
        assert caller is not None
        assert caller.role == role
    assert f":{example['POSTGRES_PASSWORD']}@postgres/" in example["LDFI_DATABASE_URL"]
    Keys.parse(example["FIT_KEYS"])


def test_the_service_gets_options_that_it_has(
    stack: dict[str, Any], example: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {variable(name) for name in Config.model_fields}
    for service in OURS:
        what = stack["services"][service]
        for name, value in what["environment"].items():
            if name.startswith("LDFI_"):
                assert name in options
                monkeypatch.setenv(name, NAMED.sub(lambda match: example[match[1]], value))

        config = Config.load()
        assert config.host == "0.0.0.0"  # noqa: S104 - in a container, behind a published port
        assert what["command"][:3] == ["ldfi", "serve", "--role"]
        check_role(what["command"][3], config)


def test_two_of_what_must_not_fail_alone_and_metrics_of_all(stack: dict[str, Any]) -> None:
    for service in ("scheduler", "ingest"):
        assert stack["services"][service]["deploy"]["replicas"] == 2
    scraped = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text()
    assert "ldfi:8600" in scraped
    assert "names: [scheduler, ingest]" in scraped


def test_files_that_are_mounted_are_there(stack: dict[str, Any]) -> None:
    for service, what in stack["services"].items():
        for volume in what.get("volumes", []):
            source = volume.partition(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_dir(), (service, source)
            else:
                assert source in stack["volumes"]
    for word in stack["services"]["collector"]["command"]:
        if word.startswith("/etc/ldfi/"):
            assert (ROOT / "deploy" / "collector" / Path(word).name).is_file()


def test_nothing_listens_beyond_this_machine_and_every_image_has_a_version(
    stack: dict[str, Any],
) -> None:
    for service, what in stack["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in what.get("ports", [])), service
        assert "build" in what or re.search(r":v?\d", what["image"]), service


def test_no_container_can_take_the_machine(stack: dict[str, Any]) -> None:
    for name, service in stack["services"].items():
        assert service.get("mem_limit"), name
        assert service.get("pids_limit"), name


def test_our_own_containers_are_read_only_and_without_rights(stack: dict[str, Any]) -> None:
    for service in (*OURS, "demo"):
        assert stack["services"][service]["read_only"] is True
        assert stack["services"][service]["cap_drop"] == ["ALL"]


def test_the_image_runs_as_nobody_and_contains_what_the_project_ships() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    last_stage = lines[max(at for at, line in enumerate(lines) if line.startswith("FROM ")) :]
    user = next(line.split()[1] for line in last_stage if line.startswith("USER "))
    assert user.isdigit()
    assert int(user) > 0
    assert any(line.startswith("HEALTHCHECK") for line in last_stage)
    context = (ROOT / ".dockerignore").read_text().splitlines()
    let_in = {line[1:] for line in context if line.startswith("!")}
    rooms = {path.parent.name for path in (ROOT / "ldfi").glob("*/__init__.py")}
    built_from = {"LICENSE", "README.md", "ldfi", "pyproject.toml", "requirements"}
    assert context[0] == "*"
    assert let_in == rooms | built_from


def test_the_image_holds_what_the_lock_names_and_nothing_else() -> None:
    """Every installation asks for hashes or for no dependencies at all."""
    text = (ROOT / "Dockerfile").read_text()
    installs = [line for line in text.splitlines() if re.search(r" install |pip wheel ", line)]
    installs = [line for line in installs if "pip" in line]
    assert len(installs) == 4
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_the_image_holds_the_decoder_where_its_python_looks_for_it() -> None:
    text = (ROOT / "Dockerfile").read_text()
    assert """get_path("purelib"))')/ldfi_native.abi3.so""" in text
    assert "cargo rustc --locked" in text
    needed = tomllib.loads((ROOT / "ldfi/lineage/native/Cargo.toml").read_text())["package"]
    assert f"ARG RUST=rust:{needed['rust-version']}-slim" in text
    assert "FROM ${RUST} AS native" in text


def test_nobodys_word_on_addresses_is_taken_who_is_not_named() -> None:
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text())
    serving = [each for each in composed["services"].values() if "serve" in each.get("command", "")]
    assert len(serving) == 3
    configured = yaml.safe_load((ROOT / "deploy/kubernetes/configmap.yaml").read_text())
    values = yaml.safe_load((ROOT / "deploy/helm/ldfi/values.yaml").read_text())
    told = [*(each["environment"] for each in serving), configured["data"], values["config"]]
    believed = {each["FORWARDED_ALLOW_IPS"] for each in told}
    assert believed == {"127.0.0.1"}
