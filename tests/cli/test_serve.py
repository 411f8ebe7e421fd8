"""``ldfi serve --dev``: one command on a machine of one's own."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ldfi.cli import serve
from ldfi.cli.ports import free_port
from ldfi.errors import Invalid
from ldfi.experiments.cluster.config import Config
from tests.cli.test_cli_service import until
from tests.cli.test_init import sourced, values
from tests.kit.cli import PROGRAM, ldfi


@contextmanager
def developing(folder: Path, port: int, *, by_variable: bool = False) -> Iterator[Path]:
    """``ldfi serve --dev`` in a folder, when it is ready: what it prints."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("LDFI_")}
    command = [*PROGRAM, "serve", "--dev"]
    if by_variable:
        clean["LDFI_PORT"] = str(port)
    else:
        command += ["--port", str(port)]
    printed = folder / "printed"
    with printed.open("w") as out:
        process = subprocess.Popen(
            command,
            env=clean,
            cwd=folder,
            stdout=out,
            stderr=subprocess.DEVNULL,
        )
    try:
        until(lambda: _ready(port), 60)
        yield printed
    finally:
        process.terminate()
        process.wait(20)


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).is_success
    except httpx.TransportError:
        return False


def status(port: int, token: str) -> int:
    headers = {"authorization": f"Bearer {token}"}
    url = f"http://127.0.0.1:{port}/api/v1/status"
    return httpx.get(url, headers=headers, trust_env=False).status_code


@pytest.mark.long
@pytest.mark.parametrize("by_variable", [False, True])
def test_one_command_makes_keys_tokens_and_says_what_services_must_be_told(
    tmp_path: Path, by_variable: bool
) -> None:
    port, file = free_port(), tmp_path / "ldfi.env"
    with developing(tmp_path, port, by_variable=by_variable) as printed:
        made, told = values(file), printed.read_text()
        assert made["LDFI_URL"] == f"http://127.0.0.1:{port}"
        assert status(port, made["OPERATOR_TOKEN"]) == 200
    with developing(tmp_path, port):
        assert status(port, made["OPERATOR_TOKEN"]) == 200, "made once"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert not {value for value in made.values() if len(value) > 30 and value in told}
    lines = told.splitlines()
    at = sourced(file, "\n".join(lines[3:]) + '\necho "$OTEL_EXPORTER_OTLP_ENDPOINT $LDFI_TOKEN"')
    assert at.split() == [f"http://127.0.0.1:{port}", made["EDGE_TOKEN"]]


def test_what_the_environment_says_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith(("LDFI_", "FIT_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "ldfi.env").write_text(
        "# ours\n\nLDFI_TOKENS=admin:0123456789abcdefghij\nLDFI_MEMBER_KEY=0123456789abcdef\n"
    )
    monkeypatch.setenv("LDFI_MEMBER_KEY", "mine0123456789abcdef")
    monkeypatch.setenv("LDFI_OUTCOMES", "devices")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    serve.take_in(lambda: "http://127.0.0.1:8600")
    assert os.environ["LDFI_MEMBER_KEY"] == "mine0123456789abcdef"
    assert os.environ["LDFI_TOKENS"] == "admin:0123456789abcdefghij"
    assert Config.load().outcomes == "devices"
    del os.environ["LDFI_OUTCOMES"]
    serve.take_in(lambda: "http://127.0.0.1:8600")
    assert Config.load().outcomes == "root"


def test_a_file_that_is_none_and_a_port_that_does_not_stay_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ldfi.env").write_text("what is this\n")
    with pytest.raises(Invalid, match=r"what is this.*ldfi init --force"):
        serve.take_in(lambda: "http://127.0.0.1:8600")
    (tmp_path / "ldfi.env").unlink()
    for said in (["--port", "0"], []):
        monkeypatch.setenv("LDFI_PORT", "0")
        refused = ldfi("serve", "--dev", *said)
        assert refused.returncode == 2
        assert "another each time" in refused.stderr
        assert not (tmp_path / "ldfi.env").exists()
