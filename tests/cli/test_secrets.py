"""Secrets: from where commands take them, what they say of one that everybody can read."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from ldfi.cli.doctor import _keys
from ldfi.errors import InvalidConfig
from ldfi.experiments.cluster.config import Config
from ldfi.testing.live_service import served
from tests.kit.cli import ldfi, ldfi_process
from tests.kit.service import GIVEN, service

ROOT = Path(__file__).parents[2]
TOKEN = GIVEN["viewer"]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> object:
    with served(service(f"sqlite:///{tmp_path_factory.mktemp('secrets') / 'x.sqlite3'}")) as url:
        yield url


@pytest.mark.parametrize(
    ("words", "env", "typed"),
    [
        (["--token", TOKEN], {}, True),
        ([f"--token={TOKEN}"], {}, True),
        ([], {"LDFI_TOKEN": TOKEN}, False),
        ([], {"LDFI_TOKEN_FILE": "a file"}, False),
        (["--token", "@a file"], {}, False),
        (["--token", "-"], {}, False),
    ],
)
def test_a_token_comes_from_where_nobody_else_looks(
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    env: Mapping[str, str],
    typed: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDFI_TOKEN", "")  # which the command sets
    Path("a file").write_text(f"{TOKEN}\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKEN}\n"))

    done = ldfi("classes", *words, "--json", LDFI_URL=url, **env)

    assert done.returncode == 0, done.stderr
    assert ("(ps)" in done.stderr) == typed
    assert TOKEN not in done.stderr


@pytest.mark.parametrize(
    ("words", "env", "said"),
    [
        ([], {"LDFI_TOKEN": "x", "LDFI_TOKEN_FILE": "x"}, "both set: use one"),
        ([], {"LDFI_TOKEN_FILE": "none"}, "LDFI_TOKEN_FILE cannot be read"),
        (["--token", "@none"], {}, "--token cannot be read"),
        (["--token", "@empty"], {}, "holds nothing"),
    ],
)
def test_a_file_without_one_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    env: Mapping[str, str],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDFI_TOKEN", "")
    Path("empty").touch()
    done = ldfi("classes", *words, **env)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_a_password_among_the_arguments_is_warned_of() -> None:
    away = "postgresql+psycopg://kim:very-secret@127.0.0.1:1/ldfi"
    done = ldfi_process("serve", "--port", "0", "--database", away, LDFI_TOKENS="")
    assert "LDFI_DATABASE_URL_FILE" in done.stderr
    assert "very-secret" not in done.stderr


def _pairs(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))


def test_the_published_secrets_open_nothing_and_made_ones_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    example = _pairs((ROOT / ".env.example").read_text())
    script = ["/bin/sh", str(ROOT / "deploy/secrets.sh")]
    made = [_pairs(subprocess.check_output(script, text=True)) for _ in range(2)]
    assert example.keys() == made[0].keys()
    assert not set(made[0].values()) & {*example.values(), *made[1].values()}
    for given, refused in [(example, True), (made[0], False)]:
        with monkeypatch.context() as here:
            for name in ("LDFI_DATABASE_URL", "LDFI_TOKENS", "LDFI_MEMBER_KEY"):
                here.setenv(name, given[name])
            config = Config.load()
        if refused:
            with pytest.raises(InvalidConfig, match="LDFI_DATABASE_URL, LDFI_TOKENS, LDFI_MEMBER"):
                config.refuse_examples()
        else:
            config.refuse_examples()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LDFI_TOKENS", "kim@admin:example-admin-token"),
        ("LDFI_MEMBER_KEY", "change-me-change-me"),
        ("LDFI_DATABASE_URL", "postgresql+psycopg://ldfi:example-postgres-password@x/ldfi"),
    ],
)
@pytest.mark.parametrize("words", [("serve", "--port", "0"), ("config", "check")], ids=" ".join)
def test_no_service_starts_with_one(words: tuple[str, ...], name: str, value: str) -> None:
    done = ldfi(*words, **{name: value})
    assert done.returncode == 2
    assert f"{name}: an example that is published" in done.stderr
    assert "openssl rand -hex 24" in done.stderr


def test_doctor_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FIT_KEYS", "example:example-signing-key-0123456789")
    assert "published" in _keys()[1]
