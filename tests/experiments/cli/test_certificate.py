"""``ldfi certificate verify``: the same program and exit codes as ``python -m ldfi.proof``."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.kit.cli import ldfi
from tests.proof.chain import chain


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
