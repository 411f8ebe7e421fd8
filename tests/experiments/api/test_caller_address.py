"""Whose address a request is counted by: nobody but a process of ours says it for another."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from starlette.requests import Request

from ldfi.experiments.api.caller_address import CALLER, address_of
from ldfi.experiments.api.forward import _onward

KEY = b"the same in all processes"


def _request(client: str | None, headers: dict[str, str], key: bytes = KEY) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    app = SimpleNamespace(state=SimpleNamespace(member_key=key))
    scope = {"type": "http", "method": "GET", "path": "/", "raw_path": b"/", "query_string": b""}
    came = {"headers": raw, "client": None if client is None else (client, 1), "app": app}
    return Request(scope | came)


@pytest.mark.parametrize("client", ["203.0.113.7", "fe80::1%eth0", "10.1.2.3", None])
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"x-forwarded-for": "198.51.100.1"},  # uvicorn believes it of whom it is told to
        {CALLER: "198.51.100.1 " + "0" * 64},
        {CALLER: "198.51.100.1"},
        {CALLER: ""},
        {CALLER: "é \xe9"},
    ],
)
def test_nobody_else_says_whose_address_it_is(client: str | None, said: dict[str, str]) -> None:
    came = _request(client, said)
    assert address_of(came) == (client or "")

    onward = asyncio.run(_onward(came, "http://leader:8600"))

    passed = dict(onward.headers.items())
    assert "x-forwarded-for" not in passed
    assert address_of(_request("10.9.9.9", passed)) == (client or "")
    assert address_of(_request("10.9.9.9", passed, b"of another installation")) == "10.9.9.9"
