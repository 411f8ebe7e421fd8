"""Runs that were dropped by age are told from runs that somebody took out."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ldfi.checker import merkle
from ldfi.checker.__main__ import BORNE_OUT, exit_code, said, words
from ldfi.checker.canonical import canonical
from ldfi.checker.certificate_claims import UNDECIDED, unbound
from ldfi.checker.checkpoint import Checkpoint, Remains, remains_root
from ldfi.checker.document import EvidenceFile
from ldfi.checker.errors import Unreadable
from ldfi.checker.head import SigningKey
from ldfi.checker.record import RunRecord
from ldfi.checker.verify import Against, Examined, verify
from tests.checker.chain import DAY, Chain, certificate, chain, key_pem, trusted

NAME = ("GET /boot", 1)
Change = Callable[[random.Random, dict[str, Any]], None]


def drawn(seed: int) -> tuple[Chain, dict[str, Any]]:
    """A chain of which some runs of a class version were dropped, that its certificate names none
    of; and their remains were signed."""
    rng = random.Random(seed)
    made = chain(rng, 30)
    document = made.document()
    mine = next(each for each in document["classes"] if each["request_class"] == NAME[0])
    records = [RunRecord.from_json(each["record"]) for each in mine["runs"]]
    may_go = [n for n, each in enumerate(records) if each.verdict != "harmful" and n]
    gone = set(rng.sample(may_go, max(2, len(may_go) // 2)))
    pruned(mine, gone, made.keys)
    return made, made.sign(document)


def pruned(mine: dict[str, Any], gone: set[int], keys: list[SigningKey]) -> None:
    remains = []
    for place in sorted(gone):
        run = mine["runs"][place]
        remain = Remains.of(RunRecord.from_json(run["record"]), run["index"])
        remains.append({**remain.said(), "path": run["path"]})
    mine["runs"] = [run for place, run in enumerate(mine["runs"]) if place not in gone]
    mine["certificate"] = certificate([each["record"] for each in mine["runs"]])
    mine["pruned"] = {"checkpoint": signed(remains, keys), "runs": remains}


def signed(remains: list[dict[str, Any]], keys: list[SigningKey]) -> dict[str, Any]:
    listed = [Remains.from_json(each) for each in remains]
    return Checkpoint.over(NAME, listed, 5 * DAY).signed_by(keys).to_json()


def of_boot(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in document["classes"] if each["request_class"] == NAME[0]
    )
    return found


def checked(made: Chain, document: dict[str, Any]) -> Examined:
    now = max(each.ended for each in made.records) + 1
    return verify(EvidenceFile.from_json(document), Against(trusted(*made.keys), now))


SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_pruned_and_signed_is_borne_out_and_counted(seed: int) -> None:
    made, document = drawn(seed)
    answer = checked(made, document)
    gone = len(of_boot(document)["pruned"]["runs"])
    assert (answer.false, answer.lacking) == ([], [])
    assert exit_code(answer) == BORNE_OUT
    assert answer.pruned == said(answer)["pruned"] == gone >= 2
    assert f"{gone} more runs were dropped by age" in words(answer)


def _left_out(rng: random.Random, mine: dict[str, Any]) -> None:
    mine["pruned"]["runs"].pop(rng.randrange(len(mine["pruned"]["runs"])))


def _all_left_out(_: random.Random, mine: dict[str, Any]) -> None:
    del mine["pruned"]


def _another_taken_out(rng: random.Random, mine: dict[str, Any]) -> None:
    run = mine["runs"].pop(rng.randrange(len(mine["runs"])))
    mine["certificate"] = certificate([each["record"] for each in mine["runs"]])
    assert run


def _another_called_pruned(rng: random.Random, mine: dict[str, Any]) -> None:
    run = mine["runs"].pop(rng.randrange(len(mine["runs"])))
    mine["certificate"] = certificate([each["record"] for each in mine["runs"]])
    remain = Remains.of(RunRecord.from_json(run["record"]), run["index"])
    mine["pruned"]["runs"].append({**remain.said(), "path": run["path"]})
    mine["pruned"]["runs"].sort(key=lambda each: each["number"])


def _another_signed_by_a_stranger(rng: random.Random, mine: dict[str, Any]) -> None:
    _another_called_pruned(rng, mine)
    mine["pruned"]["checkpoint"] = signed(mine["pruned"]["runs"], [SigningKey(key_pem())])


def _another_signed_by_nobody(rng: random.Random, mine: dict[str, Any]) -> None:
    _another_called_pruned(rng, mine)
    mine["pruned"]["checkpoint"] = signed(mine["pruned"]["runs"], [])


def _another_with_the_signature_of_before(rng: random.Random, mine: dict[str, Any]) -> None:
    before = mine["pruned"]["checkpoint"]["signatures"]
    _another_called_pruned(rng, mine)
    made = signed(mine["pruned"]["runs"], [])
    mine["pruned"]["checkpoint"] = {**made, "signatures": before}


def _no_checkpoint(_: random.Random, mine: dict[str, Any]) -> None:
    mine["pruned"]["checkpoint"] = None


def _both(rng: random.Random, mine: dict[str, Any]) -> None:
    run = rng.choice(mine["runs"])
    remain = Remains.of(RunRecord.from_json(run["record"]), run["index"])
    mine["pruned"]["runs"].append({**remain.said(), "path": run["path"]})


def _of_another_version(_: random.Random, mine: dict[str, Any]) -> None:
    mine["pruned"]["checkpoint"]["version"] += 1


def edit(name: str) -> Change:
    def edited(rng: random.Random, mine: dict[str, Any]) -> None:
        run = rng.choice(mine["pruned"]["runs"])
        other: dict[str, Any] = {
            "verdict": "harmful" if run["verdict"] != "harmful" else "tolerated",
            "hypothesis": [*run["hypothesis"], "error@z"],
            "fired": [],
            "leaf": merkle.leaf(b"another").hex(),
            "index": run["index"] + 1,
            "number": run["number"] + 1,
        }
        run[name] = other[name]

    edited.__name__ = f"another {name}"
    return edited


MUTANTS = [
    *(_left_out, _all_left_out, _another_taken_out, _another_called_pruned, _no_checkpoint),
    *(_another_signed_by_a_stranger, _another_signed_by_nobody, _both, _of_another_version),
    _another_with_the_signature_of_before,
    *map(edit, ("verdict", "hypothesis", "fired", "leaf", "index", "number")),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_somebody_changed_or_took_out_is_false(mutant: Change, seed: int) -> None:
    made, document = drawn(seed)
    forged = copy.deepcopy(document)
    mutant(random.Random(seed), of_boot(forged))
    assert forged != document
    assert checked(made, forged).false


@pytest.mark.parametrize("seed", SEEDS)
def test_harm_that_was_pruned_and_that_a_certificate_leaves_out_is_missing(seed: int) -> None:
    made = chain(random.Random(seed), 30)
    document = made.document()
    mine = of_boot(document)
    harmful = {
        place for place, each in enumerate(mine["runs"]) if each["record"]["verdict"] == "harmful"
    }
    assert harmful
    pruned(mine, harmful, made.keys)
    answer = checked(made, made.sign(document))
    assert answer.false == []
    assert any("pruned run" in each and "left out" in each for each in answer.lacking)


def test_a_claim_about_a_run_that_was_pruned_is_lacking_and_not_false() -> None:
    made, document = drawn(0)
    whole = made.document()
    of_boot(document)["certificate"] = of_boot(whole)["certificate"]
    answer = checked(made, made.sign(document))
    assert answer.false == []
    assert any("is not on record" in each for each in answer.lacking)


@pytest.mark.parametrize("named", [True, False])
def test_a_pruned_run_in_which_bystanders_were_hurt_makes_no_certificate_false(
    named: bool,
) -> None:
    """Its record says inconclusive, and a certificate of an earlier rule may call it harm: of what
    is left of it only what fired tells that it was a suspicion."""
    made = chain(random.Random(0), 30)
    records = [each for each in made.records if (each.request_class, each.version) == NAME]
    harm = next(each for each in records if each.verdict == "harmful")
    hurt = replace(harm, verdict=UNDECIDED, overruled="bystanders")
    others = [each for each in records if each is not harm]
    listed = [harm.to_json()] if named else []
    claims = certificate([*listed, *(each.to_json() for each in others)])
    # Given that its record is whole, nothing is false; whoever calls it harm lacks a proof
    assert (
        list(unbound(claims, [hurt, *others]))
        == [(False, f"{hurt.experiment} shows harm of bystanders alone")] * named
    )
    # When it is pruned
    found = list(unbound(claims, others, [Remains.of(hurt, 0)]))
    # Then nothing is false; whoever names it lacks its record, and nothing else
    assert [false for false, _ in found] == [False] * named
    assert all("is not on record" in said for _, said in found)


def test_the_entries_of_a_checkpoint_are_what_remains_say() -> None:
    made = chain(random.Random(1), 30)
    remains = [Remains.of(each, index) for index, each in enumerate(made.records)]
    leaves = [
        merkle.leaf(canonical(each.said()))
        for each in sorted(remains, key=lambda each: each.number)
    ]
    assert remains_root(remains) == merkle.root(len(leaves), merkle.lookup(leaves))
    assert remains_root([]) == merkle.EMPTY


def test_a_checkpoint_that_is_none_is_unreadable() -> None:
    _, document = drawn(0)
    of_boot(document)["pruned"]["checkpoint"]["more"] = 1
    with pytest.raises(Unreadable):
        EvidenceFile.from_json(document)
