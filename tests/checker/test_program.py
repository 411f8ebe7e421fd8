"""``python -m ldfi.checker``: what it needs, what it says, and how it ends."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ldfi.checker.__main__ import BORNE_OUT, FALSE, LACKING, UNREADABLE, main, seconds
from tests.checker.chain import Chain, chain

ROUNDS = 120


@pytest.fixture(scope="module")
def made() -> Chain:
    return chain(random.Random(7), 6)


@pytest.fixture
def key(made: Chain, tmp_path: Path) -> Path:
    file = tmp_path / "public.pem"
    file.write_text(made.keys[0].public_pem())
    return file


def written(folder: Path, document: Any, name: str = "evidence.json") -> Path:
    file = folder / name
    file.write_text(document if isinstance(document, str) else json.dumps(document))
    return file


def ended(*words: object) -> int:
    return main([str(word) for word in words])


def test_what_is_signed_is_borne_out(made: Chain, key: Path, tmp_path: Path) -> None:
    kept = written(tmp_path, made.head(3).to_json(), "head.json")
    file = written(tmp_path, made.document(since=3))
    assert ended(file, "--key", key) == BORNE_OUT
    assert ended(file, "--key", key, "--head", kept) == BORNE_OUT


def test_what_is_changed_is_false(
    made: Chain, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = made.document()
    document["classes"][0]["runs"][0]["record"]["reason"] = "another"
    assert ended(written(tmp_path, document), "--key", key, "--json") == FALSE
    said = json.loads(capsys.readouterr().out)
    assert said["verdict"] == "false"
    assert said["false"] == ["GET /boot (version 1), run 0 is not what is in the tree"]


def test_what_is_old_or_unsigned_is_lacking(made: Chain, key: Path, tmp_path: Path) -> None:
    file = written(tmp_path, made.document())
    assert ended(file, "--key", key, "--max-age", "7d") == LACKING  # it was signed in 1970
    document = made.document()
    document["head"] |= {"signatures": {}, "keys": []}
    assert ended(written(tmp_path, document), "--key", key) == LACKING
    document = made.document()
    document["head"] = None
    assert ended(written(tmp_path, document), "--key", key) == LACKING


def test_a_certificate_of_tests_is_never_more_than_lacking(
    made: Chain, key: Path, tmp_path: Path
) -> None:
    """A test has an outcome and no e-values, and nobody signs it."""
    run = {"origin": "injected", "failed": ["error@a"], "support": [], "traces": [], "good": True}
    certificate = {"axioms": {"language": {"faults": ["error@a"]}}, "evidence": [run]}
    entry = {
        "request_class": "test_a_product_can_be_bought",
        "version": 1,
        "certificate": certificate,
        "runs": [],
        "unsigned": [{"experiment": "error@a", "verdict": "tolerated"}],
    }
    head = made.head().to_json()
    for signed in (None, head):
        document = {"format": "ldfi-evidence/1", "head": signed, "grown": [], "classes": [entry]}
        assert ended(written(tmp_path, document), "--key", key) == LACKING


def test_a_chain_that_was_cut_back_is_false(made: Chain, key: Path, tmp_path: Path) -> None:
    kept = written(tmp_path, made.head().to_json(), "head.json")
    shorter = Chain(made.keys, made.records[:5])
    file = written(tmp_path, shorter.document())
    assert ended(file, "--key", key) == BORNE_OUT
    assert ended(file, "--key", key, "--head", kept) == FALSE
    nothing = written(tmp_path, shorter.document() | {"head": None})
    assert ended(nothing, "--key", key, "--head", kept) == FALSE


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", "{", '{"format": "ldfi-evidence/1"}', "1"]
)
def test_what_is_no_evidence_is_unreadable(text: str, key: Path, tmp_path: Path) -> None:
    assert ended(written(tmp_path, text), "--key", key) == UNREADABLE


def test_what_is_no_key_or_no_file_is_unreadable(made: Chain, key: Path, tmp_path: Path) -> None:
    file = written(tmp_path, made.document())
    assert ended(file, "--key", written(tmp_path, "no key", "no.pem")) == UNREADABLE
    block = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"
    assert ended(file, "--key", written(tmp_path, block, "bad.pem")) == UNREADABLE
    assert ended(tmp_path / "nothing", "--key", key) == UNREADABLE
    assert ended(tmp_path, "--key", key) == UNREADABLE


def test_no_document_makes_it_stumble(made: Chain, key: Path, tmp_path: Path) -> None:
    """Whatever stands anywhere in a document, it is answered."""
    odd = [None, True, -1, 2**53, 1e300, 0.5, "", "x", "f" * 64, [], [None], {}, {"a": 1}]
    odd += [10**30, 10**400, "\ud800", "\x1b[2J"]
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        document = copy.deepcopy(made.document())
        here: Any = document
        while True:
            places = list(here) if isinstance(here, dict) else list(range(len(here)))
            place = rng.choice(places)
            if isinstance(here[place], dict | list) and here[place] and rng.random() < 0.85:
                here = here[place]
                continue
            what = rng.random()
            if what < 0.8:
                here[place] = rng.choice(odd)
            elif isinstance(here, dict):
                here["unknown"] = 1
            else:
                here.append(rng.choice(odd))
            break
        end = ended(written(tmp_path, document), "--key", key)
        assert end in {BORNE_OUT, FALSE, UNREADABLE, LACKING}
        same = json.dumps(document, sort_keys=True) == json.dumps(made.document(), sort_keys=True)
        assert end != BORNE_OUT or same or _unhashed(document, made.document())


def _unhashed(document: dict[str, Any], real: dict[str, Any]) -> bool:
    """Whether they differ only in proofs that were not asked for."""
    for each in (document, real):
        each["grown"] = []
    return document == real


def test_classes_that_are_asked_for_have_to_be_there(
    made: Chain, key: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = made.document()
    del document["classes"][-1]["runs"][0]
    file = written(tmp_path, document)
    broken = document["classes"][-1]["request_class"]
    whole = next(e["request_class"] for e in document["classes"] if e["request_class"] != broken)
    assert ended(file, "--key", key) == FALSE
    assert ended(file, "--key", key, "--class", broken) == FALSE
    assert ended(file, "--key", key, "--class", whole) == BORNE_OUT
    assert ended(file, "--key", key, "--class", whole, "--class", "GET /none") == LACKING
    assert ended(file, "--key", key, "--class", "GET /\x1bnone") == LACKING
    assert "GET /\\x1bnone: there is no certificate of it" in capsys.readouterr().out


def test_it_needs_neither_the_service_nor_the_solver(
    made: Chain, key: Path, tmp_path: Path
) -> None:
    file = written(tmp_path, made.document())
    words = f"""
import sys
sys.argv = ["proof", {str(file)!r}, "--key", {str(key)!r}]
from ldfi.checker.__main__ import main
code = main()
ours = {{name for name in sys.modules if name.startswith("ldfi.")}}
assert all(name.startswith(("ldfi.checker", "ldfi.errors")) for name in ours), ours
sys.exit(code)
"""
    done = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == BORNE_OUT, done.stderr
    assert done.stdout.startswith("borne out")


@pytest.mark.parametrize(("text", "many"), [("7d", 604_800), ("12h", 43_200), ("30m", 1_800)])
def test_a_duration_is_read(text: str, many: float) -> None:
    assert seconds(text) == many


@pytest.mark.parametrize("text", ["", "7", "d", "7w", "-1d", "1.5h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        seconds(text)
