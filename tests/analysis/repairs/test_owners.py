"""Who owns what, by the file."""

from __future__ import annotations

import time
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.analysis.repairs.owners import MOST_LINES, Owners
from ldfi.fit.protocol.points import Point

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


PARTS = st.lists(st.sampled_from(["a", "ap", "api", ">", "*", "?", "[a-b]", "[", "b"]), min_size=1)


@given(
    st.lists(PARTS.map("".join), max_size=8),
    st.sampled_from(["api>a", "a>b", "ap>", "b", "api>http:GET:a/b", ""]),
)
def test_it_is_the_last_of_all_lines_that_fit(patterns: list[str], point: str) -> None:
    lines = tuple((pattern, (f"@{number}",)) for number, pattern in enumerate(patterns))
    caller = Point.parse(point).caller
    fitting = [
        owners
        for pattern, owners in lines
        if fnmatchcase(point if ">" in pattern else caller, pattern)
    ]
    assert Owners(lines).of(point) == (fitting[-1] if fitting else ())


def test_a_long_file_is_no_burden_on_a_page() -> None:
    text = "".join(f"s{n}-* @t{n}\ns{n}>http:*:d{n}/* @u{n}\n" for n in range(MOST_LINES // 2))
    owners, before = Owners.parse(text), time.process_time()
    for number in range(1_000):
        assert owners.of(f"s{number}>http:GET:d{number}/x") == (f"@u{number}",)
        assert owners.of(f"s{number}-b>http:GET:d/x") == (f"@t{number}",)
    assert time.process_time() - before < 3.0, "line by line it takes minutes"
