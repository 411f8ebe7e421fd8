"""``ldfi certificate verify``: the same program and exit codes as ``python -m ldfi.checker``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ldfi.checker.head import SigningKey
from ldfi.cli.main import app
from ldfi.experiments.store import Database, chain_check
from tests.checker.chain import chain, key_pem
from tests.experiments.store.evidence import append
from tests.kit.cli import ldfi


def test_what_is_signed_is_borne_out_and_what_is_changed_is_not(tmp_path: Path) -> None:
    made = chain(random.Random(2), 5)
    key, file, head = (tmp_path / name for name in ("public.pem", "evidence.json", "head.json"))
    key.write_text(made.keys[0].public_pem())
    head.write_text(json.dumps(made.head(2).to_json()))
    document = made.document(since=2)
    file.write_text(json.dumps(document))
    words = ("certificate", "verify", str(file), "--key", str(key), "--head", str(head))

    done = ldfi(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("borne out")
    old = ldfi(*words, "--max-age", "7d", "--json")
    assert (old.returncode, json.loads(old.stdout)["verdict"]) == (3, "lacking")
    document["classes"][0]["runs"].pop()
    file.write_text(json.dumps(document))
    assert ldfi(*words).returncode == 1


@pytest.mark.parametrize("more", [(), ("--max-age", "soon")])
def test_what_cannot_be_read_is_said(more: tuple[str, ...], tmp_path: Path) -> None:
    key = tmp_path / "public.pem"
    key.write_text("no key")
    file = tmp_path / "evidence.json"
    file.write_text("{}")
    done = ldfi("certificate", "verify", str(file), "--key", str(key), *more)
    assert done.returncode == 2


def test_whoever_has_the_key_vouches_for_what_nobody_has_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, url = SigningKey(pem := key_pem()), f"sqlite:///{tmp_path / 'ldfi.sqlite3'}"
    made = chain(random.Random(2), 5)
    database = Database(url)
    with database.change(1.0) as change:
        append(change, made.records)
    monkeypatch.setenv("LDFI_DATABASE_URL", url)
    monkeypatch.setenv("LDFI_TOKENS", "admin:0123456789abcdef")
    with database.read() as session:
        assert "adopt" in chain_check.check(session, (key,)).wrong
    # Without a key nobody can, and with it whoever has it
    words = ["certificate", "adopt", "--json"]
    assert "there is no key" in str(CliRunner().invoke(app, words).exception)
    monkeypatch.setenv("LDFI_SIGNING_KEY", pem)
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert [*json.loads(done.output)[""]["signatures"]] == [key.id]
    with database.read() as session:
        assert not chain_check.check(session, (key,)).wrong
    database.close()
