"""``ldfi certificate check``: what is asked of it, and what it answers to whatever it is given.

``LDFI_DOCUMENTS`` says how many odd documents are tried.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ldfi.checker.head import SigningKey
from ldfi.cli.main import app
from ldfi.solver import Explorer
from tests.checker.chain import key_pem, record
from tests.checker.solving.certificates import certificate_of
from tests.checker.solving.mutants import mutant

DOCUMENTS = int(os.environ.get("LDFI_DOCUMENTS", "200"))
SECONDS = 2.0
"""The longest an answer may take, in seconds of CPU."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "certificates.json"


def checked(file: Path, document: Any, *words: str) -> tuple[int, str]:
    """The exit code and what is printed."""
    if not isinstance(document, bytes):
        document = json.dumps(document).encode()
    file.write_bytes(document)
    done = CliRunner().invoke(app, ["certificate", "check", str(file), *words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.output


def explored(rounds: int = 99, **options: Any) -> dict[str, Any]:
    """A class in which `error@a` hurts."""
    explorer = Explorer(max_size=2, **options)
    explorer.observe({"error@a", "error@b", "error@c"})
    for _ in range(rounds):
        hypothesis = explorer.propose()
        if hypothesis is None:
            break
        good = "error@a" not in hypothesis
        support = {"error@a"} if good else None
        explorer.record(injected=hypothesis, succeeded=good, support=support)
    return explorer.certificate().data


def of(*certificates: tuple[str, Any]) -> list[dict[str, Any]]:
    return [{"request_class": name, "certificate": each} for name, each in certificates]


WHOLE = explored()
OPEN = explored(1)
FALSE = {**WHOLE, "findings": []}
PROTECTED = explored(protected=["error@b"])
EXCLUDED = explored(exclusions=[["error@b", "error@c"]])


@pytest.mark.parametrize("words", [(), ("--complete",), ("--complete", "--max-size", "2")])
@pytest.mark.parametrize(
    ("document", "code"),
    [
        (WHOLE, 0),
        (OPEN, 3),
        (FALSE, 1),
        (of(("GET /", WHOLE)), 0),
        (of(("GET /", WHOLE))[0], 0),
        (of(("GET /", WHOLE), ("GET /x", OPEN)), 3),
        (of(("GET /", OPEN), ("GET /x", FALSE)), 1),
        (of(("GET /", WHOLE), ("GET /x", {"format": "ldfi-certificate/1"})), 2),
        (of(("GET /", WHOLE), ("GET /", WHOLE)), 1),
        ([], 1),
        (None, 2),
        (3, 2),
        ({}, 2),
        ([None], 2),
        ([{"certificate": WHOLE}], 2),
        ({"format": "ldfi-certificate/1"}, 2),
        (b"", 2),
        (b"\xff\xfe", 2),
        (b'{"format": NaN}', 2),
        (b'{"format": 1, "format": 2}', 2),
        (b"[" * 200_000, 2),
        (b"9" * 5_000, 2),
    ],
)
def test_exit_codes(file: Path, document: Any, code: int, words: tuple[str, ...]) -> None:
    assert checked(file, document, *words)[0] == code


@pytest.mark.parametrize(
    ("certificate", "words", "code"),
    [
        (WHOLE, ("--max-size", "1"), 0),
        (WHOLE, ("--max-size", "3"), 3),
        (PROTECTED, (), 0),
        (PROTECTED, ("--complete",), 3),
        (PROTECTED, ("--complete", "--protected", "b"), 0),
        (PROTECTED, ("--complete", "--protected", "error@*", "--protected", "x"), 0),
        (PROTECTED, ("--complete", "--protected", "c"), 3),
        (WHOLE, ("--complete", "--protected", "c"), 0),
        (EXCLUDED, ("--complete",), 3),
        (EXCLUDED, ("--complete", "--protected", "c"), 0),
    ],
)
def test_bounds_that_are_asked_for(
    file: Path, certificate: dict[str, Any], words: tuple[str, ...], code: int
) -> None:
    assert checked(file, certificate, *words)[0] == code


def test_classes_that_are_asked_for(file: Path) -> None:
    both = of(("GET /", WHOLE), ("GET /x", OPEN))
    assert checked(file, both, "--class", "GET /")[0] == 0
    assert checked(file, both, "--class", "GET /x")[0] == 3
    code, said = checked(file, both, "--class", "GET /", "--class", "GET /none")
    assert code == 3
    assert "GET /none: open\n  there is no certificate of it" in said
    code, said = checked(file, WHOLE, "--class", "GET /")
    assert code == 3
    assert "it does not say which class it is about" in said


def test_what_is_assumed_is_said(file: Path) -> None:
    code, said = checked(file, of(("GET /", PROTECTED)))
    assert code == 0
    assert "GET /: borne out, and complete" in said
    assert "assumed, rules: at most 2 faults at once; more faults never help" in said
    assert "assumed, protected: error@b" in said
    (document,) = json.loads(checked(file, of(("GET /", PROTECTED)), "--json")[1])
    assert (document["request_class"], document["verdict"]) == ("GET /", "complete")
    assert document["assumed"]["protected"] == ["error@b"]


def judged(verdict: str = "tolerated", /, **proof: Any) -> dict[str, Any]:
    """A class of which an experiment carries what its verdict came from."""
    drawn = (record(random.Random(seed), [], 0, 2e6) for seed in range(99))
    found = next(each for each in drawn if each.verdict == verdict)
    good = verdict == "tolerated"
    explorer = Explorer(max_size=1, protected={*found.relied_on} - {*found.fired})
    explorer.observe({*found.fired, *found.relied_on})
    explorer.record(
        injected=found.hypothesis,
        succeeded=good,
        support=found.relied_on if good else None,
        proof={**found.proof(), **proof},
    )
    return explorer.certificate().data


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), ""),
        (("--delta", "0.3", "--alpha", "0.2", "--rule", "tests"), ""),
        (("--delta", "0.15"), "its δ is 0.3, and 0.15 is asked for"),
        (("--alpha", "0.05"), "its α is 0.2, and 0.05 is asked for"),
        (("--rule", "threshold"), "verdicts are by the rule tests"),
        (("--presumed", "0.05"), "is 1, and 0.05 is asked for"),
        (("--key", "KEY"), "it is not signed"),
    ],
)
def test_what_verdicts_meant_is_said_and_may_be_asked_for(
    file: Path, words: tuple[str, ...], said: str
) -> None:
    key = file.with_name("public.pem")
    key.write_text(SigningKey(key_pem()).public_pem())
    given = [str(key) if each == "KEY" else each for each in words]
    code, printed = checked(file, of(("GET /", judged())), *given)
    assert (code, said in printed) == (3 if said else 0, True)
    assert "a rise in the failure rate of 0.3 or more was ruled out (δ)" in printed
    # Without what a verdict came from nobody knows what it meant
    assert checked(file, of(("GET /", WHOLE)), *words[:2])[0] == (3 if words else 0)


def test_verdicts_by_another_rule_are_told_apart(file: Path) -> None:
    whole = judged("harmful")
    assert checked(file, whole, "--rule", "tests")[0] == 0
    rule = {**whole["evidence"][1]["proof"]["rule"], "name": "threshold"}
    other = judged("harmful", rule=rule)
    assert checked(file, other, "--rule", "tests")[0] in (1, 3)


def test_a_proof_that_cannot_be_read_makes_nothing_complete(file: Path) -> None:
    whole = judged()
    assert checked(file, whole)[0] == 0
    proof = whole["evidence"][1]["proof"]
    for name, value in proof.items():
        odds: tuple[Any, ...] = (None, 10**30, 10**400, "\ud800", [10**30], {})
        for odd in odds:
            if odd == value or (name in ("looks", "overruled") and odd is None):
                continue
            assert checked(file, judged("tolerated", **{name: odd}))[0] in (1, 2), (name, odd)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"impossible": ["error@b"]}, "it leaves error@b out"),
        ({"implied": ("error@b", "error@c")}, "it leaves error@b out"),
        ({"domains": {"error@b": ["error@c"]}}, "it leaves error@b out"),
        ({"domains": {"shared@x": ["error@b", "error@c"]}}, ""),
    ],
)
def test_what_is_left_out_by_other_names_counts(
    file: Path, options: dict[str, Any], said: str
) -> None:
    """A fault that is impossible by itself, and one that brings about what must not be tried."""
    explorer = Explorer(max_size=1, protected=["error@c"], domains=options.get("domains", {}))
    explorer.observe({"error@a", "error@b", "error@c"})
    for each in options.get("impossible", ()):
        explorer._language.exclude([each], impossible=True)
    if "implied" in options:
        explorer.imply(*options["implied"])
    while (hypothesis := explorer.propose()) is not None:
        explorer.record(injected=hypothesis, succeeded=True, support={"error@c"})
    code, printed = checked(
        file, explorer.certificate().data, "--complete", "--protected", "error@c"
    )
    assert (code, said in printed) == (3 if said else 0, True), printed


def test_names_cannot_move_the_cursor(file: Path) -> None:
    explorer = Explorer([f"\x1b[2J[red]{chr(0xD800)}\n"])
    explorer.observe({"a"})
    code, said = checked(file, of(("\x1b[1A[/x]", explorer.certificate().data)))
    assert code == 3
    assert "\x1b" not in said
    assert "\\x1b[2J[red]\\ud800\\n" in said


# --- Whatever it is given ----------------------------------------------------------------------


def odd(rng: random.Random, number: int) -> bytes:
    """A document: half of them made from certificates, some of them large."""
    if number % 2:
        return json.dumps(_anything(rng, 4)).encode("utf-8", "surrogatepass")
    document: Any = certificate_of(rng)
    for _ in range(rng.randint(1, 4)):
        document = mutant(document, rng)[1]
    if number % 100 == 0:
        _enlarge(document, rng)
    elif rng.random() < 0.3:
        document = of(*[(f"GET /{n}", document) for n in range(rng.randint(0, 3))])
    content = json.dumps(document).encode()
    if rng.random() < 0.1:
        content = content[: rng.randrange(len(content))]
    return content


def _anything(rng: random.Random, depth: int) -> Any:
    words = ["format", "ldfi-certificate/2", "axioms", "evidence", "open", "request_class", "a"]
    if depth == 0 or rng.random() < 0.3:
        return rng.choice([None, True, 0, -1, 10**20, 1.5, float("nan"), "\ud800", *words])
    many = rng.randint(0, 4)
    if rng.random() < 0.5:
        return [_anything(rng, depth - 1) for _ in range(many)]
    return {rng.choice(words): _anything(rng, depth - 1) for _ in range(many)}


def _enlarge(document: Any, rng: random.Random) -> None:
    """Let one list of it have some megabytes."""
    try:
        names = document["axioms"]["language"]["faults"]
        way = rng.randrange(7)
        if way == 0:
            document["derivation"]["steps"] *= 1 + 3_000_000 // (
                1 + len(document["derivation"]["steps"])
            )
        elif way == 1:
            names += [f"n{n}" for n in range(rng.choice([19_000, 400_000]))]
        elif way == 2:
            run = document["evidence"][-1]
            document["evidence"] += [
                {**run, "number": n + 1} for n in range(len(document["evidence"]), 30_000)
            ]
        elif way == 3:
            names += [f"n{n}" for n in range(3_000)]
            document["open"] += [sorted(rng.sample(names, 2)) for _ in range(100_000)]
        elif way == 4:
            names += [f"n{n}" for n in range(5_000)]
            document["axioms"]["language"]["implications"] += [
                {"stronger": f"n{n}", "weaker": f"n{n + 1}", "run": None} for n in range(4_999)
            ]
        elif way == 5:
            names += [f"n{n}" for n in range(2_000)]
            pairs = [
                [f"n{n}", f"n{(n * 7 + k) % 2_000}"] for n in range(2_000) for k in range(1, 60)
            ]
            document["axioms"]["impossible"] += [each for each in pairs if each[0] != each[1]]
        else:
            names += [f"n{n}" for n in range(300)]
            document["lower_bound"]["packing"] += [[f"n{n}"] for n in range(300)]
            document["minimal_failing_sets"] += [[f"n{n}"] for n in range(300)]
    except (KeyError, TypeError, IndexError, AttributeError):
        return


@pytest.mark.parametrize("documents", [30, pytest.param(DOCUMENTS, marks=pytest.mark.long)])
def test_any_document_is_answered_in_time(file: Path, documents: int) -> None:
    for number in range(documents):
        content = odd(random.Random(number), number)
        started = time.process_time()
        code, _ = checked(file, content)
        took = time.process_time() - started
        assert code in (0, 1, 2, 3), number
        assert took < SECONDS, (number, took, len(content))
