from __future__ import annotations

import random
import string
import time
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context

from ldfi.fit.protocol.context import MAX_LENGTH, Injection, decode, encode, point_hash, room
from ldfi.fit.protocol.errors import (
    ContextError,
    ExpiredContext,
    ForgedContext,
    KeyFormatError,
    MalformedContext,
)
from ldfi.fit.protocol.faults import Fault
from ldfi.fit.protocol.keys import Keys
from ldfi.fit.protocol.kinds import KINDS, FaultKind
from ldfi.fit.runtime import Runtime
from tests.fit.kinds import ANY_KIND

KEYS = Keys.parse("k1:0123456789abcdef,k0:fedcba9876543210")
FAULTS = [Fault("api>http:GET:ratings/titles/*", "error"), Fault("api>cache:get:home", "delay")]
SAFE = set(string.ascii_letters + string.digits + "._~-")


def a_context(keys: Keys = KEYS, expires: int = 200) -> str:
    return encode(keys, "e7c1", "treatment", expires, FAULTS, delay_ms=1500)


@pytest.mark.parametrize("kinds", [{"error"}, {"delay"}, {"error", "delay"}])
@given(delay_ms=st.integers(1, 9_999_999))
def test_so_many_faults_fit_and_no_more(kinds: set[FaultKind], delay_ms: int) -> None:
    keys = Keys.parse(f"{'k' * 16}:0123456789abcdef")
    longest: FaultKind = "delay" if "delay" in kinds else "error"

    def written(count: int) -> str:
        faults = [Fault(f"p{number}", longest) for number in range(count)]
        return encode(keys, "e" * 64, "treatment", 10**11, faults, delay_ms=delay_ms)

    most = room(kinds, delay_ms=delay_ms)
    assert len(written(most)) <= MAX_LENGTH
    with pytest.raises(MalformedContext):
        written(most + 1)


def test_a_context_reads_back() -> None:
    context = decode(KEYS, a_context(), now=100)

    assert (context.experiment, context.arm, context.expires) == ("e7c1", "treatment", 200)
    assert context.at("api>http:GET:ratings/titles/*") == Injection("error")
    assert context.at("api>cache:get:home") == Injection("delay", 1500)
    assert context.at("api>http:GET:elsewhere/") is None


@given(st.lists(st.text(min_size=1), max_size=100, unique=True))
def test_only_characters_that_baggage_keeps_and_100_faults_in_4_kib(points: list[str]) -> None:
    value = encode(KEYS, "e", "control", 2**31, [Fault(p, "delay") for p in points])

    assert set(value) <= SAFE
    assert len(value) <= MAX_LENGTH
    assert set(decode(KEYS, value, now=2**31 - 60).injections) == {point_hash(p) for p in points}


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


def test_the_longest_context_survives_opentelemetrys_baggage() -> None:
    faults = [Fault(f"p{i}", "error") for i in range(403)]
    value = encode(KEYS, "e" * 21, "treatment", 2**31, faults)
    carrier: dict[str, str] = {}
    W3CBaggagePropagator().inject(carrier, baggage.set_baggage("fit", value, Context()))

    assert len(value) == MAX_LENGTH
    assert carrier["baggage"] == f"fit={value}"
    received = W3CBaggagePropagator().extract(carrier, Context())
    assert baggage.get_baggage("fit", received) == value


@given(
    st.lists(
        st.builds(
            Fault,
            point=st.sampled_from(["a", "b", "c"]),
            kind=st.sampled_from(["error", "delay"]),
            first=st.integers(0, 99),
        )
    )
)
def test_of_several_faults_at_a_point_the_strongest_is_written(faults: list[Fault]) -> None:
    context = decode(KEYS, encode(KEYS, "e", "treatment", 200, faults, delay_ms=7), now=100)

    for point in ("a", "b", "c"):
        here = [f for f in faults if f.point == point]
        injection = context.at(point)
        if injection is None:
            assert not here
            continue
        assert injection.delay_ms == (7 if injection.kind == "delay" else 0)
        assert Fault(point, injection.kind, injection.first) in here
        if injection.kind == "delay":
            assert all(f.kind == "delay" for f in here)
        alike = [f.first for f in here if f.kind == injection.kind]
        assert injection.first == (0 if 0 in alike else max(alike))


@pytest.mark.parametrize("delay_ms", [-1, 0, 10_000_000])
def test_a_delay_that_could_not_be_read_back_is_refused_when_signing(delay_ms: int) -> None:
    with pytest.raises(MalformedContext, match=f"delay {delay_ms} ms"):
        encode(KEYS, "e", "treatment", 200, FAULTS, delay_ms=delay_ms)


@given(st.lists(st.tuples(ANY_KIND, st.integers(0, 99)), max_size=20), st.data())
def test_version_2_reads_back_and_a_hundred_faults_of_twenty_ways_fit(
    ways: list[tuple[str, int]], data: st.DataObject
) -> None:
    chosen = data.draw(st.lists(st.sampled_from(ways), max_size=100)) if ways else []
    faults = [Fault(f"p{i}", kind, first) for i, (kind, first) in enumerate(chosen)]

    value = encode(KEYS, "e" * 64, "control", 10**12 - 1, faults, delay_ms=9_999_999)

    assert set(value) <= SAFE
    assert len(value) <= MAX_LENGTH
    assert (value[0] == "1") == all(fault.kind in KINDS for fault in faults)
    read = decode(KEYS, value, now=10**12 - 60).injections
    assert len(read) == len(faults)
    for fault in faults:
        injection = read[point_hash(fault.point)]
        assert (injection.kind, injection.first) == (fault.kind, fault.first)
        assert injection.delay_ms == (9_999_999 if fault.kind in {"delay", "timeout"} else 0)


def test_of_several_kinds_at_a_point_what_fails_at_once_is_written() -> None:
    kinds = ["delay", "timeout", "refused", "error"]
    for weaker, stronger in pairwise(kinds):
        value = encode(KEYS, "e", "treatment", 200, [Fault("a", stronger), Fault("a", weaker)])
        injection = decode(KEYS, value, now=100).at("a")
        assert injection is not None
        assert injection.kind == stronger


def test_a_hundred_faults_take_little_room() -> None:
    kinds: list[FaultKind] = ["error", "delay"]
    faults = [Fault(f"api>http:GET:service-{i}/items/*", kinds[i % 2]) for i in range(100)]
    worst = [replace(f, kind="delay", first=99) for f in faults]
    keys = Keys.parse("sixteencharacter:0123456789abcdef")

    assert len(encode(KEYS, "e7c1", "treatment", 2**31, faults)) < 1_350
    assert len(encode(keys, "e" * 64, "treatment", 10**12 - 1, worst, delay_ms=9_999_999)) < 2_200


def forgeries(count: int, now: int) -> list[tuple[str, str]]:
    """Contexts that nobody signed for now, each with the way in which it was made."""
    draw = random.Random(6)
    stranger = Keys.parse("k1:not-the-right-key,k0:not-the-right-key-either,x:0123456789abcdef")
    alphabet = string.ascii_letters + string.digits + "._~-"
    made: list[tuple[str, str]] = []
    while len(made) < count:
        faults = [
            Fault(point, draw.choice(["error", "delay"]), draw.choice([0, 0, 1, 99]))
            for point in ("p0", "p1", "p2", f"p{draw.randrange(500)}")
        ]
        signer = Keys(draw.choice(["k1", "k0"]), KEYS.secrets)
        good = encode(signer, f"e{draw.randrange(99)}", "treatment", now + 60, faults)
        cut, at = draw.randrange(len(good)), draw.randrange(len(good))
        fields = good.split(".")
        fields[4] = str(now + draw.randrange(61, 10**6))
        made += [
            ("mutated", good[:at] + draw.choice(alphabet) + good[at + 1 :]),
            ("mutated", good[:at] + good[at + 1 :]),
            ("mutated", good[:at] + draw.choice(alphabet) + good[at:]),
            ("mutated", ".".join(fields)),
            ("expired", encode(signer, "e1", "treatment", now - draw.randrange(3600), faults)),
            ("wrong key", encode(Keys(draw.choice(["k1", "k0", "x"]), stranger.secrets),
                                 "e1", "treatment", now + 60, faults)),
            ("truncated", good[:cut]),
            ("truncated", good[cut + 1 :]),
            ("oversized", good + draw.choice(alphabet) * draw.randrange(1, 9000)),
            ("oversized", _signed_but_oversized(signer, now + 60, draw.randrange(420, 2000))),
        ]  # fmt: skip
        made = [(how, value) for how, value in made if value != good]
    return made[:count]


def _signed_but_oversized(keys: Keys, expires: int, faults: int) -> str:
    listed = "~".join(f"e{point_hash(f'p{i}')}" for i in range(faults))
    payload = f"1.{keys.signing_id}.e1.t.{expires}.{listed}"
    return f"{payload}.{keys.sign(payload)}"


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_of_many_forgeries_none_injects(count: int) -> None:
    runtime = Runtime("api", KEYS)
    attempts = forgeries(count, int(time.time()))
    contexts = [runtime.verify(value) for _, value in attempts for _ in range(2)]
    carried = [
        runtime.context(baggage.set_baggage("fit", value, Context())) for _, value in attempts
    ]

    assert {"mutated", "expired", "wrong key", "truncated", "oversized"} == set(
        Counter(how for how, _ in attempts)
    )
    assert len(attempts) == count
    assert contexts == [None] * 2 * count
    assert carried == [None] * count


def test_a_context_replayed_after_its_expiry_injects_nothing_though_it_was_obeyed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runtime, now = Runtime("api", KEYS), int(time.time())
    value = a_context(expires=now + 60)

    assert runtime.verify(value) is not None
    monkeypatch.setattr(time, "time", lambda: now + 60)
    assert runtime.verify(value) is None


@pytest.mark.parametrize(
    "text", ["k:0123456789abcdef,k:fedcba9876543210", "k:0123456789abcde\udcff"]
)
def test_keys_of_one_name_or_not_utf_8_are_refused(text: str) -> None:
    with pytest.raises(KeyFormatError, match=r"twice|UTF-8") as caught:
        Keys.parse(text)
    assert "0123456789abcde" not in str(caught.value)


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
