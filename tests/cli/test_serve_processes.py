"""``ldfi serve`` says where the pages are, and shows a link only to whoever looks on."""

from __future__ import annotations

import logging
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from ldfi.cli.serve_processes import greet, is_loopback
from ldfi.experiments.cluster.tokens import Tokens
from tests.dashboards.browsing import CSRF
from tests.kit.cli import PROGRAM

HERE = "http://127.0.0.1:8600"
APP = SimpleNamespace(state=SimpleNamespace(login_path=lambda who: f"/login?link={who}"))
ALL = "kim@operator:0123456789abcdefg,viewer:1123456789abcdefg,operator:2123456789abcdefg"


class Terminal:
    """Standard error of somebody who looks, or of nobody."""

    def __init__(self, *, seen: bool) -> None:
        self.seen = seen
        self.said = ""

    def isatty(self) -> bool:
        return self.seen

    def write(self, text: str) -> None:
        self.said += text

    def flush(self) -> None: ...


def greeted(
    monkeypatch: pytest.MonkeyPatch, tokens: str, *, seen: bool = True, host: str = "127.0.0.1"
) -> str:
    terminal = Terminal(seen=seen)
    monkeypatch.setattr(sys, "stderr", terminal)
    greet(APP, Tokens(tokens), HERE, host)
    return terminal.said


def test_the_link_is_in_the_name_of_nobody_and_of_little_power(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    who = Tokens(ALL).unnamed("operator")
    assert who is not None

    said = greeted(monkeypatch, ALL)

    assert f"{HERE}/login?link={who.id}" in said
    assert who.id not in caplog.text


@pytest.mark.parametrize(
    ("seen", "host", "tokens"),
    [
        (False, "127.0.0.1", ALL),  # a log, a file, a container
        (True, "0.0.0.0", ALL),  # whoever reaches us could be first  # noqa: S104
        (True, "192.0.2.7", ALL),
        (True, "127.0.0.1", "kim@operator:0123456789abcdefg"),  # Kim's, and nobody else's
        (True, "127.0.0.1", "ingest:0123456789abcdefg,edge:1123456789abcdefg"),
    ],
)
def test_no_link_where_another_could_read_or_use_it(
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    seen: bool,
    host: str,
    tokens: str,
) -> None:
    caplog.set_level(logging.INFO)

    said = greeted(monkeypatch, tokens, seen=seen, host=host)

    assert "link=" not in said + caplog.text
    assert f"pages and API at {HERE}; `ldfi open`" in caplog.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_is_only_this_machine(host: str) -> None:
    assert is_loopback(host)
    assert not any(map(is_loopback, ("0.0.0.0", "::", "example.org", "10.0.0.1")))  # noqa: S104


@contextmanager
def serving(folder: Path, **env: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """``ldfi serve`` at any free port, before a terminal: the process, and what it shows there."""
    shown, terminal = pty.openpty()
    clean = {name: text for name, text in os.environ.items() if not name.startswith("LDFI_")}
    process = subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"],
        env={**clean, "COLUMNS": "60", **env},
        cwd=folder,
        stderr=terminal,
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    os.close(terminal)
    try:
        yield process, shown
    finally:
        process.terminate()
        process.wait(20)
        os.close(shown)


def read(shown: int, until: str) -> str:
    said, end = "", time.monotonic() + 60
    while until not in said:
        assert time.monotonic() < end, said
        said += os.read(shown, 4096).decode()
    return said.replace("\r\n", "\n")


@pytest.mark.long
def test_a_service_begins_with_a_few_lines_and_a_link_that_works_once(tmp_path: Path) -> None:
    with serving(tmp_path) as (_, shown):
        said = read(shown, "LDFI_TOKEN.")
        lines = said[: said.index("LDFI_TOKEN.")].splitlines()  # the log may go on behind them
        assert len(lines) == 6, said
        assert "Admin token for this run" in lines[0]
        assert "the database is new" in lines[1]
        assert "alembic" not in said
        link = lines[-2].split()[-1]
        assert lines[-3].endswith(link.partition("/login")[0])
        once = [enter(link), enter(link)]
    assert once == [303, 403]

    with serving(tmp_path, LDFI_TOKENS="kim@operator:0123456789abcdefg") as (_, shown):
        said = read(shown, "logs a browser in")
    assert "link=" not in said
    assert "database" not in said


def enter(link: str) -> int:
    """Follow a link as a browser does."""
    with httpx.Client(trust_env=False) as browser:
        csrf = CSRF.search(browser.get(link).raise_for_status().text)
        assert csrf is not None
        fields = {"csrf": csrf[1], "link": parse_qs(urlsplit(link).query)["link"][0]}
        return browser.post(link.partition("?")[0], data=fields).status_code
