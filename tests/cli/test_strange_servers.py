"""Whoever answers instead of the service, or does not: one sentence each, and the exit code."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ldfi.cli.client import Client
from ldfi.errors import Unreachable
from tests.cli.test_wrong_inputs import complaint
from tests.kit.cli import ldfi
from tests.kit.service import GIVEN

HANGS = None
"""Says nothing, and keeps the connection."""


def http(body: str, status: str = "200 OK", kind: str = "application/json", more: int = 0) -> bytes:
    """An answer over HTTP. ``more``: bytes that are promised and do not come."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\n"
    return f"{head}Content-Length: {len(body) + more}\r\n\r\n{body}".encode()


@contextmanager
def answering(answer: bytes | None) -> Iterator[str]:
    """Give everybody who connects the same bytes; gives where, without the scheme."""
    kept: list[socket.socket] = []

    def serve(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                caller, _ = listening.accept()
                kept.append(caller)
                with suppress(OSError):
                    caller.recv(65_536)
                    if answer is not None:  # it hangs
                        caller.sendall(answer)
                        caller.close()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve, args=(listening,), daemon=True)
        thread.start()
        try:
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            thread.join()
            for each in kept:
                each.close()


STRANGERS = {
    "a page": (http("<html></html>", kind="text/html"), "it does not answer in JSON"),
    "a broken body": (http("<html></html>"), "it does not answer in JSON"),
    "a list": (http("[]"), "its answer is no object"),
    "a number": (http("7"), "its answer is no object"),
    "an empty object": (http("{}"), 'its answer has no "'),
    "a gateway": (http("<html></html>", "502 Bad Gateway", "text/html"), "it answered 502"),
    "TLS, in words": (
        http("HTTP request sent to HTTPS port", "400 Bad Request"),
        "https:// there?",
    ),
    "TLS, an alert": (b"\x15\x03\x01\x00\x02\x02\x46", "is it https:// there?"),
    "nothing": (b"", "it closes the connection"),
    "half an answer": (http("{}", more=9), "it closes the connection"),
    "another protocol": (b"SSH-2.0-x\r\n", "speaks no HTTP"),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two attempts nothing is waited for: nobody comes back."""
    monkeypatch.setattr("ldfi.cli.client._wait", lambda _: 0.0)


@pytest.mark.parametrize("name", STRANGERS)
@pytest.mark.parametrize("words", ["status", "findings", "whatif --down x"])
def test_a_stranger_is_one_sentence(name: str, words: str) -> None:
    answer, says = STRANGERS[name]
    if name == "a list" and words.startswith("whatif"):
        return  # which nobody can tell from a service that knows nothing
    if words.startswith("whatif"):
        says = says.replace("its answer is no object", "its answer is no list of objects")
        says = says.replace('its answer has no "', "its answer is no list of objects")
    with answering(answer) as where:
        (said,) = complaint(words, 4, LDFI_URL=f"http://{where}")
    assert says in said
    assert "LDFI_URL or --url" in said


def test_whoever_speaks_no_tls_is_one_sentence() -> None:
    with answering(STRANGERS["a page"][0]) as where:
        (said,) = complaint("status", 4, LDFI_URL=f"https://{where}")
    assert "is it http:// instead of https://?" in said


def test_whoever_hangs_is_one_sentence() -> None:
    with answering(HANGS) as where:
        client = Client(f"http://{where}", GIVEN["viewer"], seconds=0.05, attempts=2)
        with pytest.raises(Unreachable, match="took the request and gave no answer in time; is"):
            client.get("/status")
        client.close()


@pytest.mark.parametrize("url", ["http://::1:8600", "::1", "http://::1/", "https://2001:db8::7:9"])
def test_an_ipv6_address_without_brackets_is_told_of_them(url: str) -> None:
    (said,) = complaint("status", 2, LDFI_URL=url)
    assert "an IPv6 address is written in brackets, http://[::1]:8600" in said


@pytest.mark.parametrize("url", ["http://[::1]:9", "http://[::ffff:127.0.0.1]:9"])
def test_an_ipv6_address_in_brackets_is_asked(url: str) -> None:
    (said,) = complaint("status", 4, LDFI_URL=url)
    assert f"no answer from {url}: " in said


@pytest.mark.parametrize("token", ["abcdefgh\nijklmnop", "abcdefgh\r\nX-Evil: y", "abcd\tefgh"])
def test_a_token_with_a_line_break_is_one_sentence(token: str) -> None:
    (said,) = complaint("status", 2, LDFI_TOKEN=token)
    assert "the token must be printable ASCII in one piece" in said
    assert "Evil" not in said, "nobody reads secrets in messages"


@pytest.mark.parametrize(
    ("words", "env", "code"),
    [
        ("status --json", {}, 4),
        ("findings --json --limit 0", {}, 2),
        ("whatif --json", {}, 2),
        ("status --json", {"LDFI_TOKEN": ""}, 2),
        ("status --json", {"LDFI_URL": "::1"}, 2),
        ("analyze --json nowhere.json", {}, 2),
    ],
)
def test_with_json_an_error_is_one_object_with_the_sentence(
    words: str, env: dict[str, str], code: int
) -> None:
    nowhere = {"LDFI_URL": "http://127.0.0.1:9", "LDFI_TOKEN": GIVEN["viewer"]}
    done = ldfi(*words.split(), **{**nowhere, **env})
    assert done.returncode == code
    document = json.loads(done.stdout)
    assert document["exit_code"] == code
    assert done.stderr.endswith(f"ldfi: {document['error']}\n")


def test_json_behind_two_dashes_is_the_word_of_another_command() -> None:
    done = ldfi("explore", "run", "--max-size", "9", "--target", "http://x", "--", "true", "--json")
    assert (done.returncode, done.stdout) == (2, "")
