"""A browser without a browser: cookies, forms and their CSRF tokens, over a real socket."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from html.parser import HTMLParser
from typing import Any

import httpx
from fastapi import FastAPI
from sqlalchemy import event

from ldfi.experiments.cluster.tokens import Role
from ldfi.testing.live_service import served
from tests.kit.service import GIVEN

CSRF = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class Browser:
    """Keeps cookies, follows no redirects, and sends each form with the token of its page."""

    def __init__(self, client: httpx.Client) -> None:
        self.client = client

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.client.get(path, **options)

    def csrf(self, path: str = "/login") -> str:
        """The token that the forms of a page carry."""
        found = CSRF.search(self.get(path).text)
        assert found is not None, f"{path} has no form"
        return found[1]

    def post(self, path: str, page: str = "/", **fields: Any) -> httpx.Response:
        """Send a form of ``page``."""
        return self.client.post(path, data={"csrf": self.csrf(page), **fields})

    def log_in(self, token: str, to: str = "/") -> httpx.Response:
        fields = {"csrf": self.csrf("/login"), "token": token, "next": to}
        return self.client.post("/login", data=fields)


class Site:
    """An application that is served, and everybody who looks at it."""

    def __init__(self, app: FastAPI, url: str, opened: ExitStack) -> None:
        self.app = app
        self.url = url
        self._opened = opened

    def stranger(self, **cookies: str) -> Browser:
        """Somebody who is not logged in, or has these cookies from somewhere."""
        client = httpx.Client(base_url=self.url, trust_env=False, timeout=60, cookies=cookies)
        return Browser(self._opened.enter_context(client))

    def logged_in(self, role: Role = "operator") -> Browser:
        """Somebody of that role."""
        browser = self.stranger()
        response = browser.log_in(GIVEN[role])
        assert response.status_code == 303, response.text
        return browser


@contextmanager
def site(app: FastAPI) -> Iterator[Site]:
    """Serve an application."""
    with served(app) as url, ExitStack() as opened:
        yield Site(app, url, opened)


@contextmanager
def knowing(app: FastAPI, **state: Any) -> Iterator[None]:
    """Have the application know something else for a while."""
    before = {name: getattr(app.state, name) for name in state}
    app.state._state.update(state)
    try:
        yield
    finally:
        app.state._state.update(before)


class Markup(HTMLParser):
    """What a page consists of: its tags with their attributes, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._broken = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._broken = tag == "wbr"

    def handle_data(self, data: str) -> None:
        if self._broken:  # a name that may be broken here is still one
            data = self.words.pop() + data
        self.words.append(data)
        self._broken = False

    @property
    def text(self) -> str:
        """Everything that is shown, with single spaces."""
        return " ".join(" ".join(self.words).split())

    def every(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of each such tag."""
        return [attributes for name, attributes in self.tags if name == tag]


def text_of(response: httpx.Response) -> str:
    """What a page shows."""
    assert response.headers["content-type"].startswith("text/html"), response.text[:200]
    return Markup(response.text).text


@contextmanager
def counting(app: FastAPI) -> Iterator[list[str]]:
    """What pages ask the database, and not what the service does beside them (its engine, what
    delivers notifications, what looks for new namespaces): that is asked when its time has come,
    whatever page is shown."""
    asked: list[str] = []

    def ask(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if (
            not statement.startswith("BEGIN")
            and "FROM namespace" not in statement
            and not _beside()
        ):
            asked.append(statement)

    engine = app.state.database.engine
    event.listen(engine, "before_cursor_execute", ask)
    try:
        yield asked
    finally:
        event.remove(engine, "before_cursor_execute", ask)


def _beside() -> bool:
    """Whether this runs in one of the tasks that the service begins with."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a page's work in a thread
        return False
    return "note_end" in repr(task)
