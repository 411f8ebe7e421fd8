"""Which hosts a failure context may be sent to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.fit import baggage, hosts


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    hosts.forget()
    yield
    hosts.forget()


@pytest.mark.parametrize(
    ("allowed", "host", "may"),
    [
        (None, "api.stripe.com", True),
        ("", "localhost", False),
        ("*", "api.stripe.com", True),
        ("*.internal, localhost ,10.*", "prices.internal", True),
        ("*.internal, localhost ,10.*", "PRICES.Internal.", True),
        ("*.internal, localhost ,10.*", "localhost", True),
        ("*.internal, localhost ,10.*", "10.1.2.3", True),
        ("*.internal, localhost ,10.*", "internal", False),
        ("*.internal, localhost ,10.*", "prices.internal.example.com", False),
        ("*.internal, localhost ,10.*", "xlocalhost", False),
        ("::1", "[::1]", True),
        ("a.b", "axb", False),
    ],
)
def test_hosts_are_allowed_by_name(
    allowed: str | None, host: str, may: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if allowed is None:
        monkeypatch.delenv(hosts.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(hosts.VARIABLE, allowed)
    assert hosts.may_reach(host) is may


ENTRIES = st.lists(
    st.sampled_from(["a=1", "fit=x", "%66it=y;p", " FIT = z", "b=2;q=3", "fitted=1"])
)


@given(ENTRIES)
def test_only_our_entry_is_taken_out(entries: list[str]) -> None:
    header = ",".join(entries)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(hosts.VARIABLE, "*.internal")
        hosts.forget()
        assert hosts.without_ours("prices.internal", header) is None
        left = hosts.without_ours("elsewhere.example.com", header)
    left = header if left is None else left
    assert left == ",".join(each for each in entries if not baggage.values(each))


def test_whatever_goes_wrong_the_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hosts.VARIABLE, "a")
    hosts.forget()
    assert hosts.guarded(lambda: 1 / 0) is None
