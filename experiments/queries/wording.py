"""Words for verdicts, states and purposes of experiments: the one table that every page reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ldfi.experiments.domain.judging.was_it_us import hurt_in_words

OUTCOMES: Final[Mapping[str, str]] = {
    "harmful": "harmful",
    "tolerated": "survived",
    "inconclusive": "no answer",
    "aborted": "called off",
    "proposed": "waits",
    "waiting": "waits",
    "armed": "begins",
    "observing": "is running",
    "settling": "is being counted",
}
"""A verdict, or a state where there is none yet, in a word or two."""

PURPOSES: Final[Mapping[str, str]] = {
    "explore": "to find out whether it hurts",
    "confirm": "to confirm a suspicion",
    "verify": "to see whether what was found is fixed",
    "repeat": "to see whether harm that contradicts what was survived comes again",
    "recheck": "to check that what was only inferred to be safe really is",
}
"""For what it was tried."""

_SENTENCES: Final[Mapping[str, str]] = {
    "harmful": "It hurts: with these failures more requests fail than without.",
    "tolerated": "Users do not notice: with these failures requests go as well as without.",
    "inconclusive": "Nobody knows: the evidence was not enough either way.",
    "proposed": "It has not begun.",
    "waiting": "It waits.",
    "armed": "It is armed; no edge has taken it up yet.",
    "observing": "It is running.",
    "settling": "Nothing is injected any more; the last devices are reporting.",
    "aborted": "It was called off.",
    "decided": "It is over.",
}
_ALL_THE_SAME: Final = (
    "No more requests fail with these failures than without; {} {} hurt all the same."
)


def outcome_in_words(outcome: str) -> str:
    """Return a word or two for a verdict or a state; what is not known stays as it is."""
    return OUTCOMES.get(outcome, outcome)


def outcome_in_a_sentence(outcome: str, hurt: int, bystanders: int = 0) -> str:
    """Return a sentence for a verdict or a state. ``hurt``: devices, and ``bystanders``; where
    there are any nobody may read that users do not notice."""
    if outcome == "tolerated" and (hurt or bystanders):
        verb = "was" if hurt + bystanders == 1 else "were"
        return _ALL_THE_SAME.format(hurt_in_words(hurt, bystanders), verb)
    return _SENTENCES.get(outcome, outcome)


def purpose_in_words(purpose: str) -> str:
    """Return for what an experiment was tried: ``to confirm a suspicion``."""
    return PURPOSES.get(purpose, purpose)
