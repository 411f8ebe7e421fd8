"""Who a device is, by what the operator says; every language is held to the same vectors."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit.device import LONGEST, Devices, parse
from tests.fit.device_vectors import FILE, text


def test_the_vectors_of_devices_are_what_python_does() -> None:
    assert FILE.read_text(encoding="utf-8") == text(), "run python -m tests.fit.device_vectors"


def device(setting: str, headers: dict[str, list[str]], peer: str = "", trusted: str = "") -> str:
    return Devices(parse(setting), trusted).of(lambda name: headers.get(name, []), lambda: peer)


@pytest.mark.parametrize(
    ("setting", "headers", "found"),
    [
        ("header:X-Device-Id", {"x-device-id": ["d1"]}, "d1"),
        ("header:x-device-id", {"x-device-id": ["", " "]}, ""),  # or all of these were one
        ("header:x-device-id", {"x-device-id": ["a", "b"]}, "a,b"),
        ("cookie:s", {"cookie": ['a=b; s="x y"; s=2']}, "x y"),
        ("cookie:s", {"cookie": ["S=1", "s=2"]}, "2"),
        ("baggage:user.id", {"baggage": ["a=b,user.id=kim%40x.y;p=q"]}, "kim@x.y"),
        ("cookie:s,header:h", {"cookie": ["s="], "h": ["h1"]}, "h1"),
        ("cookie:s,header:h", {"cookie": [f"s={'x' * (LONGEST + 1)}"], "h": ["h1"]}, "h1"),
        ("", {"x-device-id": ["d1"]}, ""),
    ],
)
def test_the_first_that_a_request_has_wins(
    setting: str, headers: dict[str, list[str]], found: str
) -> None:
    assert device(setting, headers) == found


@pytest.mark.parametrize(
    ("peer", "trusted", "forwarded", "found"),
    [
        ("192.0.2.7:80", "", ["203.0.113.9"], "192.0.2.7"),  # nobody's word counts
        ("10.0.0.1", "10.0.0.0/8", ["1.1.1.1, 203.0.113.9", "10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", "10.0.0.0/8", ["unknown"], ""),
        ("[2001:db8:1:2:3:4:5:6]:80", "", [], "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ff::", "", [], "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "", [], "192.0.2.7"),
        ("unix:", "", [], ""),
    ],
)
def test_an_address_is_that_of_who_asks(
    peer: str, trusted: str, forwarded: list[str], found: str
) -> None:
    assert device("address", {"x-forwarded-for": forwarded}, peer, trusted) == found


def test_what_is_no_source_is_named_and_left_out(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "fit")
    assert parse("cookie:a b,header:h,addresses,address") == (("header", "h"), ("address", ""))
    assert "cookie:a b" in caplog.text
    assert "addresses" in caplog.text


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=60), st.text(max_size=60))
def test_no_request_is_too_strange(setting: str, value: str, peer: str, trusted: str) -> None:
    everything = f"{setting},cookie:s,baggage:b,address"
    headers = {name: [value] for name in ("cookie", "baggage", "x-forwarded-for")}
    assert len(device(everything, headers, peer, trusted)) <= LONGEST


@given(
    st.text(st.characters(codec="ascii", exclude_characters=';," \t%\\'), min_size=1, max_size=40)
)
def test_an_id_is_found_wherever_it_stands(identity: str) -> None:
    for setting, name, value in (
        ("header:x-id", "x-id", identity),
        ("cookie:id", "cookie", f"a=b; id={identity}; c"),
        ("baggage:id", "baggage", f"a=b, id = {identity} ;p=q,c=d"),
    ):
        assert device(setting, {name: [value]}) == identity
