"""Whoever has no key cannot have another certificate accepted than the one that was given out.

``LDFI_EVIDENCE_MUTANTS`` says how many files are tried. Some are changed anywhere, some within the
certificate by whoever knows its rules, and some are made by careful forgers, who have the solver
write another certificate that follows from itself, and then cover it up.
"""

from __future__ import annotations

import copy
import json
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ldfi.checker.__main__ import main
from ldfi.checker.canonical import canonical, read
from ldfi.checker.document import EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.record import RunRecord
from ldfi.checker.verify import Against, verify
from ldfi.cli.main import app
from ldfi.solver import Explorer
from tests.checker.chain import POINTS, Chain, certify, chain, trusted
from tests.checker.solving.mutants import RULES, mutant, places

MUTANTS = int(os.environ.get("LDFI_EVIDENCE_MUTANTS", "300"))
FAULTS = [f"{kind}@{point}" for kind in ("error", "delay") for point in POINTS]
PROTECTED = "delay@c"
GOOD = {"tolerated": True, "harmful": False}
Learned = Callable[[Explorer, list[str]], None]
"""What a forger teaches the solver besides; told what is open."""


def explored(
    records: Sequence[RunRecord], more: Learned | None = None, without: Sequence[str] = ()
) -> Explorer:
    """What these runs taught. ``without``: faults that somebody struck out."""
    explorer = Explorer(max_size=1, protected=[PROTECTED])
    explorer.observe([each for each in FAULTS if each not in without])
    for each in records:
        good = GOOD.get(each.verdict or "")
        support = [fault for fault in each.relied_on if fault not in without] if good else None
        explorer.record(
            injected=each.hypothesis,
            succeeded=good,
            support=support,
            fired=each.fired,
            traces=[trace for trace, _ in each.traces.named],
            proof=each.proof(),
        )
    if more is not None:
        open_ = explorer.certificate().data["open"]
        more(explorer, [name for faults in open_ for name in faults])
    return explorer


def given_out(seed: int) -> tuple[Chain, dict[str, Any]]:
    """An honest file: of each class most is open."""
    made = chain(random.Random(seed), 9)
    document = made.document()
    document["classes"] = [part for part in document["classes"] if part["version"] == 1]
    for part in document["classes"]:
        part["certificate"] = explored(records_of(part)).certificate().data
    return made, json.loads(json.dumps(made.sign(document)))


def records_of(part: dict[str, Any]) -> list[RunRecord]:
    return [RunRecord.from_json(leaf["record"]) for leaf in part["runs"]]


def _impossible(explorer: Explorer, left: list[str]) -> None:
    for each in left:
        explorer._language.exclude([each], impossible=True)


def _one_invented_request(explorer: Explorer, left: list[str]) -> None:
    explorer.observe((), left)


def _many_invented_requests(explorer: Explorer, left: list[str]) -> None:
    for each in left:
        explorer.observe((), [each])


def _implied(explorer: Explorer, left: list[str]) -> None:
    for each in left:
        explorer.imply(each, PROTECTED)


FORGERS: dict[str, Callable[[Sequence[RunRecord]], Explorer]] = {
    "struck out": lambda records: explored(
        records, without=[o for (o,) in explored(records).certificate().data["open"]]
    ),
    "impossible": lambda records: explored(records, _impossible),
    "one invented request": lambda records: explored(records, _one_invented_request),
    "many invented requests": lambda records: explored(records, _many_invented_requests),
    "implied": lambda records: explored(records, _implied),
}


def _as_it_is(_: dict[str, Any]) -> None:
    """Nothing is covered up."""


def _without_its_signature(document: dict[str, Any]) -> None:
    for part in document["classes"]:
        part["certified"] = None


def _as_before_there_were_any(document: dict[str, Any]) -> None:
    _without_its_signature(document)
    del document["head"]["certificates"]
    document["head"]["format"] = "ldfi-head/2"


def _with_a_tree_of_its_own(document: dict[str, Any]) -> None:
    document["head"]["certificates"] = certify(document["classes"]).to_json()


def _unsigned(document: dict[str, Any]) -> None:
    _with_a_tree_of_its_own(document)
    document["head"].update(signatures={}, keys=[])


COVERS = (
    *(_as_it_is, _without_its_signature, _as_before_there_were_any),
    *(_with_a_tree_of_its_own, _unsigned),
)


@pytest.fixture(scope="module")
def honest() -> tuple[Chain, dict[str, Any]]:
    return given_out(15)


def codes(document: dict[str, Any], made: Chain, tmp_path: Path) -> tuple[int, int, int]:
    """How `check --complete`, the same with a key, and `verify` with a key end."""
    file, key = tmp_path / "evidence.json", tmp_path / "public.pem"
    file.write_text(json.dumps(document))
    key.write_text(made.keys[0].public_pem())
    words = ["certificate", "check", str(file), "--complete", "--protected", PROTECTED]
    checked = [CliRunner().invoke(app, [*words, *more]) for more in ([], ["--key", str(key)])]
    assert not [done for done in checked if done.exception and done.exit_code not in (1, 2, 3)]
    return checked[0].exit_code, checked[1].exit_code, main([str(file), "--key", str(key)])


def test_what_was_given_out_is_accepted(
    honest: tuple[Chain, dict[str, Any]], tmp_path: Path
) -> None:
    made, document = honest
    assert all(part["certificate"]["open"] for part in document["classes"])
    assert codes(document, made, tmp_path) == (3, 3, 0)


@pytest.mark.parametrize("cover", COVERS, ids=lambda each: each.__name__.strip("_"))
@pytest.mark.parametrize("forger", FORGERS)
def test_careful_forgeries_are_not(
    honest: tuple[Chain, dict[str, Any]],
    forger: str,
    cover: Callable[[dict[str, Any]], None],
    tmp_path: Path,
) -> None:
    made, whole = honest
    document = copy.deepcopy(whole)
    for part in document["classes"]:
        part["certificate"] = FORGERS[forger](records_of(part)).certificate().data
        assert not part["certificate"]["open"]
    cover(document)
    check, check_signed, verified = codes(document, made, tmp_path)
    assert check_signed != 0
    assert verified != 0
    # What was seen of undisturbed traffic is no one's record: only a key tells
    invented = "invented" in forger and cover is not _as_it_is
    assert check != 0 or invented


def test_a_certificate_is_the_last_one_of_its_campaign(
    honest: tuple[Chain, dict[str, Any]],
) -> None:
    """One that was given out earlier is not the one that the present head signs."""
    made, document = honest
    before = copy.deepcopy(document)
    part = document["classes"][0]
    later = {**document, "classes": copy.deepcopy(document["classes"])}
    later["classes"][0]["certificate"] = explored(records_of(part)[:-1]).certificate().data
    later = made.sign(later)
    later["classes"][0] = before["classes"][0]
    against = Against(trusted(*made.keys), made.head().time + 1)
    said = verify(EvidenceFile.from_json(later), against).false
    assert any("its certificate is not the one that was signed" in each for each in said)
    made.sign(before)


@pytest.mark.parametrize("name", ["campaign", "settings", "time", "place"])
def test_whose_a_certificate_is_is_signed_with_it(
    honest: tuple[Chain, dict[str, Any]], name: str
) -> None:
    made, whole = honest
    document = copy.deepcopy(whole)
    other = {"campaign": "another", "settings": {"delta": 0.9}, "time": 1.0, "place": 7}
    document["classes"][0]["certified"][name] = other[name]
    against = Against(trusted(*made.keys), made.head().time + 1)
    assert verify(EvidenceFile.from_json(document), against).false


def mutated(rng: random.Random, made: Chain, document: dict[str, Any]) -> str:
    """Change a file without the key; say how."""
    part = rng.choice(document["classes"])
    way = rng.choice(["anywhere", "anywhere", "certificate", "certificate", "forger", "solver"])
    if way == "certificate":
        way, part["certificate"] = mutant(part["certificate"], rng)
    elif way == "forger":
        way = rng.choice(sorted(FORGERS))
        part["certificate"] = FORGERS[way](records_of(part)).certificate().data
    elif way == "solver":  # a certificate of some of the runs, or of all of another class
        others = records_of(rng.choice(document["classes"]))
        some = rng.sample(others, rng.randint(0, len(others)))
        part["certificate"] = explored(some).certificate().data
    else:
        every: dict[str, list[tuple[Any, Any]]] = {}
        for holder, key, path in places(document):
            every.setdefault(path, []).append((holder, key))
        holder, key = rng.choice(every[rng.choice(sorted(every))])
        elsewhere, key_there, _ = rng.choice(list(places(document)))
        odd: tuple[object, ...] = (None, 0, 1, [], {}, "x", 10**30, -1.5, True, "\ud800")
        holder[key] = rng.choice([*odd, copy.deepcopy(elsewhere[key_there])])
    cover = rng.choice([_as_it_is, *COVERS])
    if cover is not _as_it_is and way in FORGERS:
        cover(document)
    elif rng.random() < 0.2:
        stranger = Chain(records=made.records, certified=None)
        document["head"] = stranger.head().to_json()
    return way


def test_nothing_else_than_what_was_given_out_is_accepted() -> None:
    tried, accepted = Counter[str](), 0
    made, whole = given_out(0)
    known = trusted(*made.keys)
    for seed in range(MUTANTS):
        if seed % 500 == 0:
            made, whole = given_out(seed)
            known = trusted(*made.keys)
        rng, document = random.Random(seed), copy.deepcopy(whole)
        how = mutated(rng, made, document)
        tried["a field" if how.startswith("a field") else how] += 1
        try:
            given = EvidenceFile.from_json(read(json.dumps(document)))
            found = verify(given, Against(known, made.head().time + 1))
        except Unreadable:
            continue
        if not found.false and not found.lacking:
            accepted += 1
            mine = {(each["request_class"], each["version"]): each for each in whole["classes"]}
            for part in given.classes:
                assert canonical(part.certificate) == canonical(
                    mine[part.class_version]["certificate"]
                ), f"seed {seed}: {how}"
    assert len(tried) > min(len(RULES), MUTANTS // 20)
    print(f"{MUTANTS} files, {accepted} as given out were accepted, no other")  # noqa: T201
