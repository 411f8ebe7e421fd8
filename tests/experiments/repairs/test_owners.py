"""Who owns what, by the file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.experiments.repairs.owners import MOST_LINES, Owners

FILE = """
# who mends what
*                       @platform

checkout                @payments ann@example.org
api>http:*:license/*    @playback
sandbox
"""


@pytest.mark.parametrize(
    ("point", "owners"),
    [
        ("checkout>db:SELECT:orders/rows", ("@payments", "ann@example.org")),
        ("api>http:POST:license/keys", ("@playback",)),
        ("api>http:GET:cdn/manifest", ("@platform",)),
        ("sandbox>http:GET:x/y", ()),
        ("no point of ours", ("@platform",)),
    ],
)
def test_the_last_line_that_fits_counts(point: str, owners: tuple[str, ...]) -> None:
    assert Owners.parse(FILE).of(point) == owners


def test_where_no_line_fits_nobody_is_named() -> None:
    assert Owners.parse("api @web").of("till>http:GET:x/y") == ()
    assert Owners().of("till>http:GET:x/y") == ()


def test_a_file_without_end_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 10,000 are read"):
        Owners.parse("x @y\n" * (MOST_LINES + 1))


@given(st.text())
def test_no_file_is_too_odd(text: str) -> None:
    assert isinstance(Owners.parse(text).of("api>http:GET:x/y"), tuple)
