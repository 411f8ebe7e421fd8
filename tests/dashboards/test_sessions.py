"""Session cookies by themselves: signed, dated, told apart."""

from __future__ import annotations

import pytest
from fastapi import Request, Response
from itsdangerous import TimestampSigner

from ldfi.dashboards.sessions import COOKIE, LASTS, Session, Sessions
from ldfi.experiments.store.database import Database

DB = Database("sqlite://")
SESSIONS = Sessions(b"key", lambda: DB)


def request(cookie: str = "", scheme: str = "http") -> Request:
    headers = [(b"cookie", f"{COOKIE}={cookie}".encode())]
    return Request(
        {
            "type": "http",
            "method": "GET",
            "scheme": scheme,
            "server": ("localhost", 80),
            "path": "/",
            "query_string": b"",
            "headers": headers,
        }
    )


def begun(sessions: Sessions = SESSIONS, who: str = "kim") -> tuple[Session, str]:
    """A session, and its cookie."""
    response = Response()
    session = sessions.begin(response, request(), who)
    cookie = response.headers["set-cookie"].partition("=")[2].partition(";")[0]
    return session, cookie


def test_a_cookie_is_read_back() -> None:
    session, cookie = begun()
    assert SESSIONS.of(request(cookie)) == session
    assert (
        Sessions(b"key", lambda: DB).of(request(cookie)) == session
    )  # another process, the same key


def test_no_other_key_reads_it() -> None:
    _, cookie = begun()
    assert Sessions(b"another", lambda: DB).of(request(cookie)) is None


@pytest.mark.parametrize("cookie", ["", "x", "a.b.c", "WyJraW0iLCJ4Il0.aaaaaa.bbbbbbbbbbb", "é"])
def test_what_is_no_cookie_of_ours_is_no_session(cookie: str) -> None:
    assert SESSIONS.of(request(cookie)) is None


def test_a_cookie_that_was_changed_is_no_session() -> None:
    _, cookie = begun()
    payload, _, signature = cookie.partition(".")
    _, other = begun(who="ann")
    assert SESSIONS.of(request(f"{other.partition('.')[0]}.{signature}")) is None
    assert SESSIONS.of(request(f"{payload}.{signature}x")) is None


def test_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    _, cookie = begun()
    now = TimestampSigner("x").get_timestamp()
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: now + LASTS - 5)
    assert SESSIONS.of(request(cookie)) is not None
    monkeypatch.setattr(TimestampSigner, "get_timestamp", lambda _: now + LASTS + 5)
    assert SESSIONS.of(request(cookie)) is None


def test_each_session_has_a_number_and_a_csrf_token_of_its_own() -> None:
    first, second = begun()[0], begun()[0]
    assert first.number != second.number
    assert first.csrf != second.csrf
    assert first.number not in first.csrf


def test_over_https_the_cookie_goes_over_nothing_else() -> None:
    response = Response()
    SESSIONS.begin(response, request(scheme="https"), "kim")
    assert "; secure" in response.headers["set-cookie"].lower()


def test_behind_a_proxy_that_ends_tls_it_does_not_either() -> None:
    response = Response()
    Sessions(b"key", lambda: DB, secure=True).begin(response, request(scheme="http"), "kim")
    assert "; secure" in response.headers["set-cookie"].lower()


def test_one_that_has_ended_is_no_session() -> None:
    sessions = Sessions(b"key", lambda: DB)
    session, cookie = begun(sessions)
    _, other = begun(sessions)
    sessions.end(Response(), session)
    assert sessions.of(request(cookie)) is None
    assert sessions.of(request(other)) is not None
