"""``ldfi init``: a file of secrets that works everywhere, and words that hold none."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
import yaml

from ldfi.cli import init
from ldfi.errors import Conflict, Invalid
from ldfi.experiments.cluster.tokens import ROLES, Tokens
from ldfi.experiments.queries.process_environment import STARTED, WRAPPED
from ldfi.fit.protocol.keys import Keys
from tests.docs.test_site import DOCS
from tests.kit.cli import ldfi


def values(file: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in file.read_text().splitlines())
    return {name: value for name, _, value in pairs}


def sourced(file: Path, script: str) -> str:
    """What a shell prints that has read the file."""
    text = f"set -a; . {file}; set +a\n{script}"
    clean = {"PATH": os.environ["PATH"]}
    return subprocess.check_output(["/bin/sh", "-euc", text], text=True, env=clean)


def test_every_role_has_a_token_and_every_key_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "ldfi.env"
    assert ldfi("init", "--file", str(file)).returncode == 0

    found = values(file)
    tokens = Tokens(found["LDFI_TOKENS"])
    for role in ROLES:
        held = tokens.known(found[f"{role.upper()}_TOKEN"])
        assert held is not None
        assert held.role == role
    assert found["LDFI_TOKEN"] == found["OPERATOR_TOKEN"]
    assert set(init.ROLES) == set(ROLES)
    assert Keys.parse(found["FIT_KEYS"]).signing_id == "k1"
    assert len(set(found.values())) == len(found) - 1


def test_people_say_in_a_file_of_their_own_how_they_call_requests(tmp_path: Path) -> None:
    file, names = tmp_path / "ldfi.env", tmp_path / init.NAMES
    made = ldfi("init", "--file", str(file))
    assert f"LDFI_NAMES_FILE={names}" in made.stdout
    assert ldfi("config", "check", LDFI_NAMES_FILE=str(names)).returncode == 0

    names.write_text('["GET /play"]\nname = "Play"\n')
    assert ldfi("init", "--file", str(file), "--force").returncode == 0
    assert "Play" in names.read_text()


def test_the_service_takes_the_file_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "ldfi.env"
    init.write(file, init.as_file(init.made("http://127.0.0.1:8600")), force=False)
    clean = {name: "" for name in os.environ if name.startswith("LDFI_")}

    checked = ldfi("config", "check", "--json", **{**clean, **values(file)})

    assert checked.returncode == 0, checked.stderr
    options = json.loads(checked.stdout)["options"]
    assert {options[name]["from"] for name in ("tokens", "member_key")} == {
        "LDFI_TOKENS",
        "LDFI_MEMBER_KEY",
    }


def test_only_its_owner_can_read_it_and_it_is_never_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "ldfi.env"
    before = os.umask(0)
    try:
        assert ldfi("init", "--file", str(file)).returncode == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    first = file.read_text()

    refused = ldfi("init", "--file", str(file))

    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--force" in refused.stderr
    assert file.read_text() == first
    assert ldfi("init", "--file", str(file), "--force").returncode == 0
    assert not set(first.splitlines()[:3]) & set(file.read_text().splitlines())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(tmp_path.iterdir()) == [tmp_path / init.NAMES, file]


def test_a_link_is_replaced_and_not_followed(tmp_path: Path) -> None:
    elsewhere, file = tmp_path / "elsewhere", tmp_path / "ldfi.env"
    elsewhere.write_text("mine")
    file.symlink_to(elsewhere)
    with pytest.raises(Conflict):
        init.write(file, "secret", force=False)

    init.write(file, "secret", force=True)

    assert (elsewhere.read_text(), file.read_text()) == ("mine", "secret")
    with pytest.raises(Invalid, match="cannot be written"):
        init.write(tmp_path / "no" / "ldfi.env", "secret", force=True)


@pytest.mark.parametrize("words", [(), ("--for", "compose"), ("--for", "kubernetes"), ("--json",)])
def test_what_is_printed_holds_no_secret(tmp_path: Path, words: tuple[str, ...]) -> None:
    file = tmp_path / "ldfi.env"
    done = ldfi("init", "--file", str(file), *words)

    secrets = {value for name, value in values(file).items() if name != "LDFI_URL"}
    assert len(secrets) > len(ROLES)
    assert not [each for each in secrets if each in done.stdout + done.stderr]


def test_a_shell_that_has_read_it_starts_services_with_what_they_need(tmp_path: Path) -> None:
    file = tmp_path / "ldfi.env"
    printed = ldfi("init", "--file", str(file)).stdout
    found = values(file)
    assert f"set -a; . {file}; set +a" in printed
    script = printed.replace("ldfi serve", "")

    told = sourced(file, f"{script}\nenv").splitlines()

    assert f"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{found['INGEST_TOKEN']}" in told
    assert f"FIT_KEYS={found['FIT_KEYS']}" in told
    assert f"LDFI_TOKEN={found['EDGE_TOKEN']}" in told  # what the edge is told comes last


def test_compose_reads_what_is_printed_for_it(tmp_path: Path) -> None:
    printed = ldfi("init", "--file", str(tmp_path / "x.env"), "--for", "compose").stdout
    service, each, edge = (
        yaml.safe_load(f"environment:{part}")["environment"]
        for part in printed.split("environment:")[1:]
    )

    assert service["LDFI_TOKENS"] == "${LDFI_TOKENS}"
    assert each["OTEL_EXPORTER_OTLP_ENDPOINT"] == edge["LDFI_URL"] == "http://ldfi:8600"
    assert edge["LDFI_TOKEN"] == "${EDGE_TOKEN}"
    assert "LDFI_TOKEN" not in each


def test_kubernetes_takes_the_secrets_from_a_secret_made_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    printed = ldfi("init", "--file", str(file), "--for", "kubernetes").stdout
    assert f"kubectl create secret generic ldfi --from-env-file {file}" in printed
    service, each, edge = (
        yaml.safe_load(part.partition("\n#")[0]) for part in printed.split("\nenv:\n")[1:]
    )
    known = values(file)
    for block in (service, each, edge):
        names = [variable["name"] for variable in block]
        assert len(set(names)) == len(names)
        for number, variable in enumerate(block):
            if "valueFrom" in variable:
                assert variable["valueFrom"]["secretKeyRef"]["name"] == "ldfi"
                assert variable["valueFrom"]["secretKeyRef"]["key"] in known
            else:  # the kubelet knows what stands above
                used = re.findall(r"\$\((\w+)\)", variable["value"])
                assert set(used) <= set(names[:number])
                assert "${" not in variable["value"]
    assert {"name": "LDFI_URL", "value": "http://ldfi:8600"} in edge
    assert "LDFI_TOKEN" not in [variable["name"] for variable in each]


def test_each_framework_has_its_line(tmp_path: Path) -> None:
    printed = ldfi("init", "--file", str(tmp_path / "x.env")).stdout
    for line in (*STARTED.values(), *WRAPPED.values()):
        assert f": {line}\n" in printed
    pages = "".join(page.read_text("utf-8") for page in (DOCS / "howto").glob("*.md"))
    for word in ("EdgeMiddleware(", "WSGIEdgeMiddleware(", "--import ldfi-fit/register"):
        assert word in pages


def test_an_address_that_a_shell_would_misread_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ldfi.env"

    refused = ldfi("init", "--file", str(file), "--url", "http://x/$(id)")

    assert refused.returncode == 2
    assert not file.exists()
