"""Bodies as strangers send them: as long as they are said to be, or none at all."""

from __future__ import annotations

import http.client
from email.message import Message
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldfi.explore.external.bodies import body_of

CHUNKED = ("Transfer-Encoding", "chunked")


def read(sent: bytes, *headers: tuple[str, str], most: float = float("inf")) -> bytes | None:
    told: Message = http.client.HTTPMessage()
    for name, value in headers:
        told[name] = value
    return body_of(told, BytesIO(sent), most)


@given(st.lists(st.binary(min_size=1, max_size=200)), st.binary(max_size=9), st.booleans())
def test_what_was_sent_is_read_and_what_follows_is_left(
    pieces: list[bytes], following: bytes, trailer: bool
) -> None:
    body, headers = b"".join(pieces), http.client.HTTPMessage()
    headers["Transfer-Encoding"] = "chunked"
    chunks = b"".join(b"%x;a=b\r\n%b\r\n" % (len(each), each) for each in pieces)
    stream = BytesIO(chunks + b"0\r\n" + (b"A: b\r\n" if trailer else b"") + b"\r\n" + following)
    assert body_of(headers, stream) == body
    assert stream.read() == following
    told = http.client.HTTPMessage()
    told["Content-Length"] = str(len(body))
    stream = BytesIO(body + following)
    assert body_of(told, stream) == body
    assert stream.read() == following


@pytest.mark.parametrize(
    "length", ["-1", "-0", "+5", "1_0", "0x5", "5.0", "five", "", "5, 6", "٥", "9" * 5_000, "6"]
)
def test_a_length_that_is_none_or_never_comes_is_no_body(length: str) -> None:
    assert read(b"hello", ("Content-Length", length)) is None


def test_no_memory_is_taken_for_what_is_only_told() -> None:
    assert read(b"hello", ("Content-Length", str(10**17))) is None
    assert read(b"FFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n", CHUNKED) is None


def test_two_lengths_that_differ_are_none() -> None:
    assert read(b"hello", ("Content-Length", "5"), ("Content-Length", "5")) == b"hello"
    assert read(b"hello", ("Content-Length", "5"), ("Content-Length", "4")) is None


@pytest.mark.parametrize(
    "sent",
    [
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"g\r\n",
        b"\r\n",
        b"",
        b"5\r\nhel",
        b"5\r\nhello",
        b"5\r\nhello\r\n",
        b"5\r\nhelloo\r\n0\r\n\r\n",
        b"0" * 10_000,
        b"0\r\n" + b"a: b\r\n" * 10_000 + b"\r\n",
    ],
)
def test_chunks_that_are_none_or_break_off_are_no_body(sent: bytes) -> None:
    assert read(sent, CHUNKED) is None


def test_what_is_longer_than_may_be_is_not_taken() -> None:
    assert read(b"hello", ("Content-Length", "5"), most=5) == b"hello"
    assert read(b"hello", ("Content-Length", "5"), most=4) is None
    twice = b"3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
    assert read(twice, CHUNKED, most=5) == b"hello"
    assert read(twice, CHUNKED, most=4) is None
