"""What is written as JSON is read as it was, whatever is in it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.store.compressed import pack, parse, unpack

HALVES = st.characters(categories=["Cs"])
"""Halves of characters: once they were not cleaned, and may be on record."""
TEXTS = st.text(st.one_of(st.characters(), HALVES))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda of: st.one_of(st.lists(of), st.dictionaries(TEXTS, of)), max_leaves=20
)


@given(DOCUMENTS)
def test_what_is_packed_comes_out_as_it_was(document: Any) -> None:
    again = unpack(pack(document))
    assert again == document
    assert _types(again) == _types(document)


@given(DOCUMENTS)
def test_text_of_before_is_read_as_well(document: Any) -> None:
    text = json.dumps(document)
    assert unpack(text) == document
    assert parse(text) == json.loads(text)


def _types(document: Any) -> Any:
    """Tell 1 from 1.0 and from True, all the way down."""
    if isinstance(document, dict):
        return {name: _types(each) for name, each in document.items()}
    return [*map(_types, document)] if isinstance(document, list) else type(document)
