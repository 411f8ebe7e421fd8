"""An address is called one, whatever answers there."""

from __future__ import annotations

import pytest

from ldfi.analysis.names import Names
from ldfi.fit.protocol.points import is_address


@pytest.mark.parametrize(
    ("point", "callee", "said"),
    [
        ("web>http:GET:127.0.0.1:8081/x", "", "the service at 127.0.0.1:8081"),
        ("web>http:GET:localhost:8081/x", "", "the service at localhost:8081"),
        ("web>http:GET:0.0.0.0:8081/x", "", "the service at 0.0.0.0:8081"),
        ("web>http:GET:::1:8081/x", "", "the service at ::1:8081"),
        ("web>db:GET:127.0.0.1:6379", "127.0.0.1:6379", "the database at 127.0.0.1:6379"),
        ("web>message:send:127.0.0.1:9092/plays", "127.0.0.1:9092", "the broker at 127.0.0.1:9092"),
        ("web>http:GET:127.0.0.1:8081/x", "stock", "stock"),
        ("web>http:GET:stock/x", "", "stock"),
        ("web>rpc:Get:/shop.Cart", "", "web's Get"),
    ],
)
def test_what_a_call_reaches(point: str, callee: str, said: str) -> None:
    certain = {point: callee} if callee else {}
    assert Names(certain, {}, {}, frozenset()).service(point) == said


@pytest.mark.parametrize(
    ("peer", "address"),
    [("localhost", True), ("::1", True), ("10.0.0.1", True), ("redis", False), ("db:5432", False)],
)
def test_addresses_are_told_from_names(peer: str, address: bool) -> None:
    assert is_address(peer) == address
