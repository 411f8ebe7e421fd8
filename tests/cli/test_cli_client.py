"""The client of the API against servers that answer late, not at all, or break off."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from ldfi.cli.client import ATTEMPTS, Client
from ldfi.cli.control import connected, segment
from ldfi.cli.stream import Stream
from ldfi.errors import Conflict, ExperimentsError, Invalid, NotFound, Unreachable

TOKEN = "viewer-0123456789abcdef"
BREAK = "break off"


@dataclass
class Server:
    """Gives the answers in their order, the last one again and again, and keeps the requests."""

    answers: list[Any]
    url: str = ""
    requests: list[tuple[str, str, dict[str, str], bytes]] = field(default_factory=list)

    def headers(self, name: str) -> list[str | None]:
        return [each.get(name.lower()) for _, _, each, _ in self.requests]


@contextmanager
def serving(*answers: Any) -> Iterator[Server]:
    """Answers are ``(status, document, headers)``, text of an event stream, or BREAK."""
    server = Server(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.requests.append((self.command, self.path, headers, body))
            answer = server.answers[0] if len(server.answers) == 1 else server.answers.pop(0)
            if answer == BREAK:
                self.close_connection = True
                return
            status, document, more = answer if isinstance(answer, tuple) else (200, answer, {})
            stream = isinstance(document, str)
            content = document.encode() if stream else json.dumps(document).encode()
            kind = "text/event-stream" if stream else "application/json"
            self.send_response(status)
            for name, value in {"content-type": kind, **more}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = handle_any  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def problem(status: int, kind: str, **more: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    document = {
        "type": f"https://ldfi.dev/problems/{kind}",
        "status": status,
        "detail": "no",
        **more,
    }
    return status, document, {}


def test_a_post_without_an_answer_is_sent_again_with_the_same_key() -> None:
    with serving(BREAK, BREAK, {"id": "x"}) as server, connected(server.url, TOKEN) as client:
        assert client.post("/campaigns", {"name": "n"}) == {"id": "x"}

    keys = server.headers("Idempotency-Key")
    assert len(keys) == 3
    assert keys[0]
    assert len(set(keys)) == 1
    assert {body for *_, body in server.requests} == {b'{"name":"n"}'}


def test_every_post_has_a_key_of_its_own() -> None:
    with serving({}) as server, connected(server.url, TOKEN) as client:
        client.post("/halt", {"reason": "x"})
        client.post("/halt", {"reason": "x"})

    assert len(set(server.headers("Idempotency-Key"))) == 2


def test_what_takes_no_key_is_not_sent_again_once_it_may_have_been_received() -> None:
    with serving(BREAK) as server, connected(server.url, TOKEN) as client:
        with pytest.raises(Unreachable):
            client.post("/tokens", {"name": "kim", "role": "viewer"})
        with pytest.raises(Unreachable):
            client.delete("/tokens/x")

    assert len(server.requests) == 2


def test_nobody_is_asked_for_ever() -> None:
    with (
        serving(BREAK) as server,
        connected(server.url, TOKEN) as client,
        pytest.raises(Unreachable, match="ldfi serve"),
    ):
        client.get("/status")

    assert len(server.requests) == ATTEMPTS


def test_a_service_that_asks_for_patience_gets_it() -> None:
    busy = (*problem(409, "idempotency-in-progress")[:2], {"Retry-After": "1"})
    with serving(busy, {"id": "x"}) as server, connected(server.url, TOKEN) as client:
        started = time.monotonic()
        assert client.post("/campaigns", {}) == {"id": "x"}

    assert time.monotonic() - started >= 1
    assert len(set(server.headers("Idempotency-Key"))) == 1


def test_a_long_wait_is_the_callers_choice() -> None:
    limited = (*problem(429, "rate-limited")[:2], {"Retry-After": "60"})
    with (
        serving(limited) as server,
        connected(server.url, TOKEN) as client,
        pytest.raises(ExperimentsError, match="no"),
    ):
        client.get("/status")

    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (problem(404, "not-found"), NotFound, "no"),
        (problem(409, "conflict"), Conflict, "no"),
        (problem(401, "unauthorized"), ExperimentsError, "LDFI_TOKEN"),
        (problem(500, "internal", incident="abc"), Unreachable, "incident abc"),
        (
            problem(422, "invalid", errors=[{"at": "body/max_size", "what": "too big"}]),
            ExperimentsError,
            "no\n  max_size: too big",
        ),
        ((502, "<html>", {}), Unreachable, "answered 502"),
        ((200, "<html>", {}), Unreachable, "no ldfi service"),
    ],
)
def test_problems_in_words(answer: Any, kind: type[Exception], message: str) -> None:
    with (
        serving(answer) as server,
        connected(server.url, TOKEN) as client,
        pytest.raises(kind) as caught,
    ):
        client.get("/status")

    assert message in str(caught.value)


@pytest.mark.parametrize(("limit", "asked"), [(None, 3), (450, 3), (400, 2), (1, 1)])
def test_pages_are_followed_as_far_as_wanted(limit: int | None, asked: int) -> None:
    sizes = [1] if limit == 1 else [200, 200, 50]
    pages = [
        {"items": list(range(size)), "cursor": f"c{index}" if index < 2 else None}
        for index, size in enumerate(sizes)
    ]
    with serving(*pages) as server, connected(server.url, TOKEN) as client:
        page = client.page("/audit", limit, subject="a b")

    assert len(server.requests) == asked
    assert len(page["items"]) == (limit or 450)
    assert "subject=a+b" in server.requests[-1][1] or "subject=a%20b" in server.requests[-1][1]
    assert asked == 1 or "cursor=c" in server.requests[-1][1]


@pytest.mark.parametrize("token", ["", "  ", "schlüssel", "a\nb"])
def test_what_cannot_be_a_token_is_not_sent(token: str) -> None:
    with pytest.raises(Invalid, match="LDFI_TOKEN"):
        Client("http://127.0.0.1:9", token)


def test_an_id_cannot_leave_its_place_in_the_path() -> None:
    assert segment("../halt?x#y") == "..%2Fhalt%3Fx%23y"


def an_event(number: int) -> str:
    row = {"at": 1.0, "who": "a", "what": "halt", "subject": str(number), "why": ""}
    return f"event: audit\nid: {number}\ndata: {json.dumps(row)}\n\n"


def test_a_broken_stream_goes_on_where_it_broke() -> None:
    progress = "event: progress\ndata: []\n\n"
    first, second = an_event(7) + progress + an_event(9), an_event(12)
    with (
        serving(first, BREAK, problem(503, "too-many-streams"), second, progress) as server,
        connected(server.url, TOKEN) as client,
        Stream(client, 5) as stream,
    ):
        seen: list[str] = []
        end = time.monotonic() + 30
        while len(seen) < 3 and time.monotonic() < end:
            seen += [event.subject for event in stream.take(0.2)]

    assert seen == ["7", "9", "12"]
    assert server.headers("Last-Event-ID")[:4] == ["5", "9", "9", "9"]
