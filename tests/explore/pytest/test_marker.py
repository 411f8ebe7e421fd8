"""Markers: what they say, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ldfi.errors import LdfiError
from ldfi.explore.pytest.marker import Bounds, InvalidMarker


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        ((), {"max_size": 0}, "max_size=0 leaves nothing to try"),
        ((), {"max_size": 5}, "max_size is 5; it must be at least 1 and at most 4"),
        ((), {"max_size": "2"}, "max_size='2' leaves nothing to try"),
        (
            (),
            {"kinds": ["crash"]},
            "'crash' is not a kind of fault; the kinds are error, delay, refused",
        ),
        ((), {"kinds": ["status:200"]}, "a status from 400 to 599"),
        ((), {"kinds": [1]}, "'1' is not a kind of fault"),
        ((), {"kinds": []}, "choose of error, delay"),
        ((), {"kinds": "delay:2..12"}, "a kind draws lengths of 12 s"),
        (
            (),
            {"kinds": "delay:2"},
            "a fixed delay has no length in its kind; write delay",
        ),
        ((), {"delay": -1}, "delay=-1 is not between 0 and 3600 seconds"),
        ((), {"time_limit": "1 m"}, "time_limit='1 m' is not between 0 and 3600 seconds"),
        ((), {"size": 2}, "size is not understood; the marker takes ['max_size', 'kinds'"),
        ((), {"seed": 2}, "seed is not understood"),
        ((2,), {}, "2 is not understood"),
    ],
)
def test_what_cannot_be_read_is_refused(
    arguments: tuple[Any, ...], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidMarker) as refused:
        Bounds.of(arguments, options, seed=0)

    assert said in str(refused.value)
    assert isinstance(refused.value, LdfiError)


def test_one_kind_or_pattern_needs_no_list() -> None:
    bounds = Bounds.of((), {"kinds": "delay", "protected": "*:db/*"}, seed=7)

    assert bounds == Bounds(kinds=("delay",), protected=("*:db/*",), seed=7)
