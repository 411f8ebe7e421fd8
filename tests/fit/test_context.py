from __future__ import annotations

import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fit.context import MAX_LENGTH, Injection, decode, encode, point_hash
from fit.errors import ContextError, ExpiredContext, ForgedContext, KeyFormatError, MalformedContext
from fit.faults import Fault
from fit.keys import Keys

KEYS = Keys.parse("k1:0123456789abcdef,k0:fedcba9876543210")
FAULTS = [Fault("api>http:GET:ratings/titles/*", "error"), Fault("api>cache:get:home", "delay")]
SAFE = set(string.ascii_letters + string.digits + "._~-")


def a_context(keys: Keys = KEYS, expires: int = 200) -> str:
    return encode(keys, "e7c1", "treatment", expires, FAULTS, delay_ms=1500)


def test_a_context_reads_back() -> None:
    context = decode(KEYS, a_context(), now=100)

    assert (context.experiment, context.arm, context.expires) == ("e7c1", "treatment", 200)
    assert context.at("api>http:GET:ratings/titles/*") == Injection("error")
    assert context.at("api>cache:get:home") == Injection("delay", 1500)
    assert context.at("api>http:GET:elsewhere/") is None


@given(st.lists(st.text(min_size=1), max_size=100, unique=True))
def test_only_characters_that_survive_baggage_and_a_hundred_faults_in_4_kib(
    points: list[str],
) -> None:
    value = encode(KEYS, "e", "control", 2**31, [Fault(p, "delay") for p in points])

    assert set(value) <= SAFE
    assert len(value) <= MAX_LENGTH
    assert set(decode(KEYS, value, now=0).injections) == {point_hash(p) for p in points}


def test_an_older_key_still_verifies_and_an_unknown_one_does_not() -> None:
    older = Keys("k0", KEYS.secrets)

    assert decode(KEYS, a_context(older), now=100).experiment == "e7c1"
    with pytest.raises(ForgedContext):
        decode(Keys.parse("k0:anothersecret0123"), a_context(older), now=100)


def test_a_context_past_its_expiry_is_refused() -> None:
    with pytest.raises(ExpiredContext):
        decode(KEYS, a_context(expires=200), now=200)


@given(st.data())
def test_no_altered_context_is_obeyed(data: st.DataObject) -> None:
    value = a_context()
    where = data.draw(st.integers(0, len(value) - 1))
    what = data.draw(st.characters(codec="ascii"))
    altered = value[:where] + what + value[where + 1 :]
    if altered == value:
        return
    with pytest.raises(ContextError):
        decode(KEYS, altered, now=100)


@given(st.one_of(st.text(), st.integers(0, 200).map(lambda n: a_context()[:n])))
def test_what_is_no_context_is_refused(value: str) -> None:
    if value == a_context():
        return
    with pytest.raises(ContextError):
        decode(KEYS, value, now=100)


def test_too_many_faults_are_refused_when_signing() -> None:
    with pytest.raises(MalformedContext, match="does not fit"):
        encode(KEYS, "e", "treatment", 1, [Fault(f"p{i}", "error") for i in range(1000)])


@pytest.mark.parametrize("text", ["", " , ", "nokey", "k:short", "k!:0123456789abcdef"])
def test_keys_that_cannot_be_read_are_refused_without_being_shown(text: str) -> None:
    with pytest.raises(KeyFormatError) as caught:
        Keys.parse(text)
    assert "0123456789abcdef" not in str(caught.value)


def test_secrets_do_not_show_in_a_representation() -> None:
    assert "0123456789abcdef" not in repr(KEYS)


def test_expiry_is_in_unix_seconds() -> None:
    expires = int(time.time()) + 5
    assert decode(KEYS, a_context(expires=expires), time.time()).expires == expires
