"""The query API of a place where traces are kept, asked over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final, Self

import httpx

from ldfi.error_words import unanswered
from ldfi.errors import Invalid, NotFound, Unreachable

TIMEOUT: Final = httpx.Timeout(60.0, connect=5.0)
"""Seconds. Searching through an hour of traces may take a store that long."""

_WANTS_A_NAME: Final = frozenset({401, 403, 407})
_SHOWN: Final = 200
"""Letters of an answer that are shown where it is none that we understand."""

Progress = Callable[[str, float, float | None], None]
"""Called now and then: what is being done, how much of it is done, and of how much, if known."""


@dataclass(frozen=True, slots=True)
class TraceQuery:
    """Which traces are asked for: those in which ``service`` has a part, between two times (Unix
    seconds), ``limit`` at most."""

    service: str
    begin: float
    end: float
    limit: int


class TraceApi:
    """Asks one store. ``url``: where its API is, without ``/api``. ``headers``: sent each time.

    Raises Invalid for what is no URL. Use it as a context manager, or :meth:`close` it.
    """

    def __init__(self, url: str, headers: Mapping[str, str], progress: Progress) -> None:
        try:
            given = httpx.URL(url.rstrip("/"))
        except (httpx.InvalidURL, UnicodeError) as error:
            raise Invalid("that is no URL: write http://HOST:PORT or https://HOST") from error
        if given.scheme not in {"http", "https"} or not given.host:
            raise Invalid("that is no URL: write http://HOST:PORT or https://HOST")
        if not all(text.isascii() and text.isprintable() for text in headers.values()):
            raise Invalid("a token or --header holds what cannot be sent")  # it may be a secret
        self._http = httpx.Client(base_url=given, headers=dict(headers), timeout=TIMEOUT)
        self.name = str(given.copy_with(userinfo=b""))  # there may be a password in it
        self.progress = progress

    def __enter__(self) -> Self:
        """Use it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def document(self, path: str, **query: str | int) -> Any:
        """GET a JSON document.

        Raises Unreachable where nobody answers or the store failed, Invalid where it wants to know
        who asks, NotFound for what it does not have.
        """
        try:
            response = self._http.get(path, params=query, headers=_JSON)
        except httpx.HTTPError as error:
            raise self._silent(error) from error
        self._check(response)
        try:
            return response.json()
        except ValueError as error:
            raise self._no_json(path) from error

    def save(self, path: str, file: IO[bytes], **query: str | int) -> None:
        """GET a JSON document into a file, however large. Raises like :meth:`document`."""
        done = 0
        try:
            with self._http.stream("GET", path, params=query, headers=_JSON) as response:
                if response.status_code != 200:
                    response.read()
                self._check(response)
                if "json" not in response.headers.get("content-type", ""):
                    raise self._no_json(path)
                for piece in response.iter_bytes(1 << 16):
                    done += len(piece)
                    file.write(piece)
                    self.progress(f"{self.name}: {done / 1e6:.1f} MB", done, None)
        except httpx.HTTPError as error:
            raise self._silent(error) from error

    def _silent(self, error: httpx.HTTPError) -> Unreachable:
        return Unreachable(f"no answer from {self.name}: {unanswered(error)}")

    def _no_json(self, path: str) -> Unreachable:
        return Unreachable(
            f"{self.name}{path} does not answer in JSON: is the query API at another address?"
        )

    def _check(self, response: httpx.Response) -> None:
        code = response.status_code
        if code in _WANTS_A_NAME or response.is_redirect:
            raise Invalid(
                f"{self.name} answers {code}, it wants to know who asks: put a bearer token in"
                " LDFI_TRACES_TOKEN, or give --header 'NAME: VALUE'"
            )
        if code == 404:
            raise NotFound(f"{self.name} has no {response.url.path}: is it the query API?")
        if code != 200:
            said = " ".join(response.text.split())[:_SHOWN]
            raise Unreachable(f"{self.name} answers {code}: {said or response.reason_phrase}")


_JSON: Final = {"Accept": "application/json"}
