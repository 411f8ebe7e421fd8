"""Which words are identifiers: numbers, hashes, tokens, and what else stands for one thing of many.

An identifier in a name makes a thousand names of one. A word that is taken for an identifier
makes one name of two. So only what is hardly a word is wildcarded: known forms (uuids, ULIDs,
addresses), and what is drawn at random from letters and digits, told by digits *within* it and
by the want of any longer run of small letters. ``OLJCESPC7Z`` and ``dQw4w9WgXcQ`` are
identifiers, ``oauth2``, ``v1beta1`` and ``getV2UserInfo`` are words, and so is ``ABCDEFGHIJ``,
whatever it may be: what no rule can tell is learned of traffic (:mod:`ldfi.lineage.templates`).

``fit/go/identifiers.go``, ``fit/js/identifiers.js`` and ``Identifiers.java`` say the same; the
vectors (``fit/protocol/vectors/points.json``) hold them to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONG = 40
"""Characters above which a word with a digit is no word."""

_FORMS = re.compile(
    r"""
      [+-]?\d[\d.,:_+-]*                                        # 17, 3.14, 1-20, 2026-11-21
    | [0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}               # uuid
    | (?=[0-9a-f]*\d)[0-9a-f]{8,}                               # hash
    | (?=[a-f]*\d[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7}               # short hash of git
    | [A-Z0-9]{26}                                              # ulid
    | [^@]+@[^@]+                                               # e-mail address
    | [A-Za-z]{0,8}[-_.]?\d{3,}                                 # tt0111161, user-1234
    | (?=(?:[^0-9]*\d){3})[\w.=-]{16,}                          # tokens
    """,
    re.VERBOSE | re.ASCII,
)
_QUALIFIED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", re.ASCII)
"""A name within packages: ``temporal.api.workflowservice.v1.WorkflowService``."""

_VERSION = re.compile(r"v\d+", re.ASCII)
_DIGITS = re.compile(r"[0-9]")
_NUMBER_FIRST = re.compile(r"\d{5,}[-_][^\n]+", re.ASCII)
_NUMBER_LAST = re.compile(r"[^\n]+[-_]\d{5,}", re.ASCII)
_UUID_LAST = re.compile(r"[^\n]+[-_][0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", re.ASCII)


def is_identifier(text: str) -> bool:
    """Return whether a word stands for one thing of many.

    >>> [word for word in ("OLJCESPC7Z", "v1beta1", "red-shoes-12345") if is_identifier(word)]
    ['OLJCESPC7Z', 'red-shoes-12345']
    """
    if _QUALIFIED.fullmatch(text):
        return any(_is_word_of_one(p) and not _VERSION.fullmatch(p) for p in text.split("."))
    return _is_word_of_one(text)


def _is_word_of_one(text: str) -> bool:
    if _FORMS.fullmatch(text) or (len(text) > LONG and _DIGITS.search(text)):
        return True
    return _is_drawn(text) or _ends_in_one(text)


def _ends_in_one(text: str) -> bool:
    """Return whether words lead up to an identifier, as in a slug, or one to words."""
    if _NUMBER_FIRST.fullmatch(text) or _NUMBER_LAST.fullmatch(text) or _UUID_LAST.fullmatch(text):
        return True
    tail = text[max(text.rfind("-"), text.rfind("_")) + 1 :]
    return len(tail) < len(text) - 1 and (_is_hash(tail) or _is_drawn(tail))


def _is_hash(text: str) -> bool:
    digits = sum(letter in "0123456789" for letter in text)
    return len(text) >= 7 and 2 <= digits < len(text) and not text.strip("0123456789abcdef")


@dataclass(slots=True)
class _Letters:
    """What a word is made of. ``within``: digits with a letter behind them. ``changes``: from a
    small letter to a capital, and between letters and digits. ``run``: the longest one of small
    letters."""

    small: int = 0
    capitals: int = 0
    digits: int = 0
    marks: int = 0
    within: int = 0
    changes: int = 0
    run: int = 0


def _is_drawn(text: str) -> bool:
    """Return whether letters and digits look as if they were drawn at random."""
    size = len(text)
    if size < 8:
        return False
    of = _letters(text)
    if of is None or not of.within or (of.marks and size < 16):
        return False
    if of.small and of.capitals:
        mixed = of.within >= 2 or (size >= 16 and 3 * of.changes >= size)
        return size >= 10 and mixed and of.run < (6 if size >= 16 else 4)
    if of.marks:
        return False
    if of.capitals:
        return size >= 10 or of.within >= 2
    return of.within >= 2 and ((size >= 10 and of.digits >= 3) or size >= 20)


def _letters(text: str) -> _Letters | None:
    """Count what a word is made of; None for one that has something else in it."""
    of, run, before = _Letters(), 0, ""
    for letter in text:
        if "0" <= letter <= "9":
            kind = "digit"
            of.digits += 1
        elif "a" <= letter <= "z":
            kind = "small"
            of.small += 1
        elif "A" <= letter <= "Z":
            kind = "capital"
            of.capitals += 1
        elif letter in "-_":
            kind = "mark"
            of.marks += 1
        else:
            return None
        run = run + 1 if kind == "small" else 0
        of.run = max(of.run, run)
        of.within += before == "digit" and kind in {"small", "capital"}
        of.changes += (before, kind) in _CHANGES
        before = kind
    return of


_CHANGES = frozenset(
    {
        *(("small", "capital"), ("digit", "small"), ("digit", "capital")),
        *(("small", "digit"), ("capital", "digit")),
    }
)
