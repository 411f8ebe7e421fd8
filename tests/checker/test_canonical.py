"""Canonical JSON: the examples of RFC 8785, and one form for each value."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.checker.canonical import canonical, number, read
from ldfi.checker.errors import Unreadable

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("bits", "written"),
    [  # appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_are_written_as_the_standard_has_them(bits: str, written: str) -> None:
    assert number(struct.unpack(">d", bytes.fromhex(bits))[0]) == written


def test_a_document_is_written_as_the_standard_has_it() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\nA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_names_are_sorted_by_their_utf_16() -> None:
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    assert list(json.loads(canonical(dict.fromkeys(names, 0)))) == expected


@given(VALUES)
def test_what_is_read_back_is_the_same_and_written_alike(value: object) -> None:
    written = canonical(value)
    assert canonical(read(written)) == written
    assert read(written) == value


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_means_what_it_was(value: float) -> None:
    assert float(number(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        "[NaN]",
        "[1e999]",
        "[12345678901234567890]",
        '["\\ud800"]',
        "[" * 50 + "]" * 50,
        "[" * 100_000,
        "",
        "{",
    ],
)
def test_what_two_readers_might_read_differently_is_refused(text: str) -> None:
    with pytest.raises(Unreadable):
        read(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**60, {1: 2}, {"a": {1}}])
def test_what_has_no_such_form_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="no"):
        canonical(value)
