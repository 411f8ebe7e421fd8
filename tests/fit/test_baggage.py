from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.baggage import get_baggage
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context

from ldfi.fit import baggage

MEMBERS = st.lists(st.tuples(st.sampled_from(["a", "b", "fit"]), st.text("xyz123.", min_size=1)))


@given(MEMBERS)
def test_our_entry_is_taken_out_and_put_in_without_touching_the_rest(
    members: list[tuple[str, str]],
) -> None:
    header = ",".join(f"{name}={value}" for name, value in members)
    others = [f"{n}={v}" for n, v in members if n != "fit"]

    cleaned = baggage.without(header)

    assert [m for m in cleaned.split(",") if m] == others
    assert baggage.find(baggage.with_entry(cleaned, "v")) == "v"


PIECES = ["f", "i", "t", "fit", "%66", "%69", "%74", "%20", "+", " ", "\t", "=", ",", ";", "x", "F"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_was_taken_out_no_sdk_finds(header: str) -> None:
    read = W3CBaggagePropagator().extract({"baggage": baggage.without(header)}, Context())

    assert get_baggage("fit", read) is None


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_an_sdk_finds_is_seen(header: str) -> None:
    read = W3CBaggagePropagator().extract({"baggage": header}, Context())

    assert get_baggage("fit", read) is None or baggage.values(header)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_what_is_put_in_an_sdk_finds(header: str) -> None:
    stamped = baggage.with_entry(baggage.without(header), "1.k")

    read = W3CBaggagePropagator().extract({"baggage": stamped}, Context())
    assert get_baggage("fit", read) == "1.k"
