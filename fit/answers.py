"""Answers over HTTP that somebody gives in place of the dependency.

A status is an answer of a server that is there and says no. ``empty``, ``truncated`` and
``corrupt`` come with status 200: nothing in the body, a body cut before its announced end, and one
that is no text and no JSON although it says it is. Every client makes its own response of these, or
reads :func:`wire` with its own parser.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from ldfi.fit import error
from ldfi.fit.protocol.kinds import RECORDS, FaultKind

_JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: ``length`` is what its header announces, more than the body has where it is
    cut."""

    status: int
    reason: str
    content_type: str
    body: bytes
    length: int

    @property
    def cut(self) -> bool:
        """Return whether the connection ends before the body does."""
        return self.length > len(self.body)

    @property
    def headers(self) -> dict[str, str]:
        """The headers, those of the connection aside."""
        return {"content-type": self.content_type, "content-length": str(self.length)}


def answer_of(kind: FaultKind) -> Reply | None:
    """Make the answer that is this kind of fault; None for a kind that is no answer."""
    word, _, code = kind.partition(":")
    if word == "status":
        return Reply(int(code), _reason(int(code)), "text/plain", error.BODY, len(error.BODY))
    answer = RECORDS[word].get("answer")
    if answer is None:
        return None
    status, body = RECORDS[word]["status"], answer["body"].encode("latin-1")
    return Reply(status, _reason(status), _JSON, body, len(body) + answer["missing"])


def wire(answer: Reply) -> bytes:
    """Write an answer as HTTP/1.1 sends it, with a body that ends where the answer does."""
    head = [f"HTTP/1.1 {answer.status} {answer.reason}"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*head, "connection: close", "", ""]).encode("ascii") + answer.body


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
