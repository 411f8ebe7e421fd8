"""No certificate that is false is accepted, whatever was changed in a true one.

``LDFI_MUTANTS`` says how many are tried.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

from ldfi.checker.solving import UnreadableCertificate, check, examine
from tests.checker.solving.certificates import certificate_of
from tests.checker.solving.mutants import RULES, mutant
from tests.checker.solving.oracle import Oracle

MUTANTS = int(os.environ.get("LDFI_MUTANTS", "200"))
HARMLESS = {"fewer bounds", "more of it firm", "no word of doubt", "deterministic", "monotone"}
"""Rules after which most certificates are still true, by what they then say they assume."""
EACH = 20
"""Mutants of one certificate."""


def test_what_is_written_is_true_and_accepted() -> None:
    for seed in range(MUTANTS // EACH):
        document = certificate_of(random.Random(seed))
        assert check(document) == [], seed
        assert Oracle(document).wrong() == [], seed


def test_a_mutant_is_rejected_or_still_true() -> None:
    accepted: Counter[str] = Counter()
    for seed in range(MUTANTS // EACH):
        document = certificate_of(random.Random(seed))
        for number in range(EACH):
            name, changed = mutant(document, random.Random(f"{seed} {number}"))
            if name == "nothing" or check(changed):
                continue
            accepted[name] += 1
            assert Oracle(changed).wrong() == [], (seed, number, name)
            # And whoever changes what is assumed cannot do so in silence
            if _axioms(changed) != _axioms(document):
                assert examine(changed).assumed != examine(document).assumed, (seed, number, name)
    # As most of them are rejected, there is something in it
    assert accepted.total() < MUTANTS / 3


def test_every_rule_is_broken_and_most_of_what_that_gives_is_rejected() -> None:
    for name, rule in RULES.items():
        rejected = 0
        for seed in range(12):
            rng = random.Random(f"{name} {seed}")
            document = certificate_of(rng)
            try:
                rule(document, rng)
            except (IndexError, ValueError, KeyError):
                continue
            wrong = check(document) != []
            rejected += wrong
            assert wrong or Oracle(document).wrong() == [], (name, seed)
        assert rejected or name in HARMLESS, name


def test_documents_of_before_are_told_apart() -> None:
    documents: list[Any] = [{}, {"format": "ldfi-certificate/1"}, [], None, 3]
    for document in documents:
        try:
            examine(document)
        except UnreadableCertificate:
            continue
        raise AssertionError(document)
    assert "older format" in check({"format": "ldfi-certificate/1"})[0]


def _axioms(document: dict[str, Any]) -> Any:
    return _sorted(document["axioms"])


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(each) for key, each in value.items() if each != []}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=repr)
    return value
