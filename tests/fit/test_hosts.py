"""Which hosts a failure context may be sent to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from grpc import aio
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict
from urllib3 import HTTPHeaderDict

from ldfi.fit import baggage, hosts
from tests.fit.test_vectors import vectors


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    hosts.forget()
    yield
    hosts.forget()


@pytest.mark.parametrize("case", vectors("hosts.json", "cases"), ids=str)
def test_hosts_are_allowed_by_rule(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if case["hosts"] is None:
        monkeypatch.delenv(hosts.VARIABLE, raising=False)
    else:
        monkeypatch.setenv(hosts.VARIABLE, case["hosts"])
    assert hosts.may_reach(case["host"]) is case["allowed"]


OURS = ["fit=x", "%66it=y;p", " FIT = z", "\tfit=1.k.a"]
THEIRS = ["a=1", "b=2;q=3", "fitted=1", "\xe9=1", ""]


@st.composite
def written(draw: st.DrawFn, text: str) -> Any:
    """A text as somebody may hand it to a client."""
    kind = draw(st.sampled_from(["str", "bytes", "bytearray", "list", "tuple"]))
    match kind:
        case "str":
            return text
        case "bytes":
            return text.encode("latin-1")
        case "bytearray":
            return bytearray(text, "latin-1")
        case "list":
            return [text, text]
        case _:
            return (text.encode("latin-1"), text)


@st.composite
def pairs(draw: st.DrawFn) -> list[tuple[Any, Any]]:
    """Headers in their order, some of them several times."""
    made = []
    for _ in range(draw(st.integers(0, 5))):
        name = draw(st.sampled_from(["baggage", "Baggage", "BAGGAGE ", "x-fit", "authorization"]))
        entries = draw(st.lists(st.sampled_from([*OURS, *THEIRS]), max_size=4))
        value = draw(written(",".join(entries)))
        made.append((draw(st.sampled_from([name, name.encode()])), value))
    return made


SHAPES: dict[str, Callable[[list[tuple[Any, Any]]], Any]] = {
    "list": list,
    "tuple": tuple,
    "lists": lambda given: [list(each) for each in given],
    "iterator": iter,
    "dict": lambda given: dict(given).items(),
    "multidict": lambda given: CIMultiDict(given).items(),
    "urllib3": lambda given: HTTPHeaderDict(given).items(),
    "metadata": lambda given: aio.Metadata(*given),
}


def texts(value: Any) -> list[str]:
    """All that is written in a name or a value."""
    if isinstance(value, list | tuple):
        return [text for each in value for text in texts(each)]
    return [value if isinstance(value, str) else bytes(value).decode("latin-1")]


def is_baggage(name: Any) -> bool:
    return texts(name)[0].strip().lower() == "baggage"


def brute(text: str) -> str:
    return ",".join(each for each in text.split(",") if each not in OURS)


@pytest.fixture(scope="module")
def internal_only() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(hosts.VARIABLE, "*.internal")
        yield


@given(pairs(), st.sampled_from(sorted(SHAPES)))
def test_only_our_entry_is_taken_out(
    internal_only: None, given: list[tuple[Any, Any]], shape: str
) -> None:
    """Whatever shape headers have: nothing of ours is left in the baggage, all else is."""
    if shape in {"multidict", "urllib3"}:
        given = [(texts(name)[0], value) for name, value in given]
    headers = SHAPES[shape](given)
    before = copy.deepcopy(given if shape == "iterator" else [tuple(each) for each in headers])
    if shape != "iterator":
        assert hosts.addressed(headers, "prices.internal") is None
    left = hosts.addressed(headers, "elsewhere.example.com")
    if shape != "iterator":
        assert [tuple(each) for each in headers] == before, "the caller's own are not touched"
        changed = any(is_baggage(n) and texts(v) != [*map(brute, texts(v))] for n, v in before)
        assert (left is None) is not changed
    after = before if left is None else left
    assert len(after) == len(before)
    for (name, value), (name_left, value_left) in zip(before, after, strict=True):
        assert name_left == name
        if not is_baggage(name):
            assert value_left == value
            continue
        assert texts(value_left) == [brute(text) for text in texts(value)]
        assert not any(baggage.values(text) for text in texts(value_left))
        assert isinstance(value_left, str) is isinstance(value, str)
        assert isinstance(value_left, list | tuple) is isinstance(value, list | tuple)


@pytest.mark.parametrize("nothing", [None, (), {}.items()])
def test_where_there_are_no_headers_nothing_is_done(internal_only: None, nothing: Any) -> None:
    assert hosts.addressed(nothing, "elsewhere.example.com") is None


AWS = "AWS4-HMAC-SHA256 Credential=k/20261123/eu/s3/aws4_request"


@pytest.mark.parametrize(
    ("authorization", "goes"),
    [
        (f"{AWS}, SignedHeaders=baggage;host, Signature=f00", True),
        (f"{AWS},SignedHeaders=host;Baggage;x-amz-date,Signature=f00".encode(), True),
        (f"{AWS.replace('HMAC', 'ECDSA-P256')}, SignedHeaders=baggage, Signature=f00", True),
        (f"{AWS}, SignedHeaders=host;x-baggage, Signature=f00", False),
        (f"{AWS}, SignedHeaders=host, Signature=baggage", False),
        ("Bearer xxbaggagexx", False),
        ("Bearer SignedHeaders=baggage", False),
        ("Basic AWS4-SignedHeaders=baggage", False),
    ],
)
def test_only_baggage_that_aws_has_signed_goes_as_it_is(
    internal_only: None, authorization: str | bytes, goes: bool
) -> None:
    headers = [("Authorization", authorization), ("baggage", "fit=x,a=1")]
    left = hosts.addressed(headers, "elsewhere.example.com")
    assert (left is None) is goes
    if left is not None:
        assert left == [("Authorization", authorization), ("baggage", "a=1")]


def test_whatever_goes_wrong_the_call_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hosts.VARIABLE, "a")
    hosts.forget()
    assert hosts.guarded(lambda: 1 / 0) is None
