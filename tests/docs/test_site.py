"""The documentation: it builds strictly, asks nobody else, is in step with the code, and its code
runs."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from types import ModuleType

import pytest

from tests.examples.loading import loaded

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md"]
RUN = ("howto/fastapi.md", "howto/flask.md", "howto/grpc.md", "howto/kafka.md")
_BLOCK = re.compile(r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^\1```$", re.M | re.S)
_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|"""
    r"""<link[^>]+rel=["']?(?:stylesheet|preload|preconnect|icon)[^>]*href=["']?(?:https?:)?//|"""
    r"""@import\s+(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//"""
)


@cache
def generator() -> ModuleType:
    return loaded(DOCS / "generate.py")


def blocks(page: Path, language: str) -> Iterator[str]:
    """The code of a page, as it would be typed."""
    for found in _BLOCK.finditer(page.read_text(encoding="utf-8")):
        if found["language"] == language:
            yield re.sub(rf"^{found['indent']}", "", found["text"], flags=re.M)


def test_the_reference_is_what_the_code_says() -> None:
    stale = [
        path.name for path, text in generator().pages().items() if path.read_text("utf-8") != text
    ]
    assert stale == [], "run: python docs/generate.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as CI builds it."""
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_every_page_is_in_the_site(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").exists()
    assert not list(site.rglob("*.py"))


@pytest.mark.long
def test_a_reader_asks_nobody_else_for_anything(site: Path) -> None:
    for file in [*site.rglob("*.html"), *site.rglob("*.css")]:
        fetched = [each[0] for each in _FETCHED.finditer(file.read_text(encoding="utf-8"))]
        assert fetched == [], file.name


def test_what_would_be_fetched_is_noticed() -> None:
    """Or the test above would be worth nothing."""
    for html in (
        '<script src="https://cdn.example/x.js">',
        "<img src=//cdn.example/x.png>",
        '<link rel="stylesheet" href="https://fonts.example/css">',
        "@import url(https://fonts.example/css)",
        "src:url(//fonts.example/a.woff2)",
    ):
        assert _FETCHED.search(html), html
    assert not _FETCHED.search('<a href="https://doi.org/10.1145/2723372.2723711">')


@pytest.mark.long
@pytest.mark.parametrize("page", RUN)
def test_the_code_of_a_how_to_runs(page: str, tmp_path: Path) -> None:
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks(DOCS / page, "python")), encoding="utf-8")
    unset = {"LDFI_URL", "LDFI_TOKEN", "OTEL_EXPORTER_OTLP_ENDPOINT"}
    env = {name: value for name, value in os.environ.items() if name not in unset}
    env |= {"FIT_KEYS": f"k1:{secrets.token_hex(32)}", "OTEL_SEMCONV_STABILITY_OPT_IN": "http"}
    # Nobody listens where spans go, and a program ends without waiting for that
    env |= {"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_BSP_EXPORT_TIMEOUT": "100"}
    done = subprocess.run(
        [sys.executable, str(program)], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def commands(page: Path) -> Iterator[list[str]]:
    """Every call of ``ldfi`` that a page tells people to type, in words."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").replace("$(", " ( ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            for marks, words in groupby(lexer, lambda word: not word.strip("();<>|&")):
                called = [] if marks else list(words)
                if called and called[0] in {"ldfi", ".venv/bin/ldfi"}:
                    yield called[1:]


@cache
def known_commands() -> dict[tuple[str, ...], set[str]]:
    """Every command there is, and its options."""
    made = generator()
    known = {
        tuple(path.split()[1:]): {
            name
            for each in made._parameters(callback)
            for name in re.findall(r"--[a-z0-9-]+", each.name)
        }
        for path, callback in made._commands()
    }
    for group, usual in (("findings", "list"), ("explore", "run"), ("replay", "feed")):
        known[(group,)] = known[group, usual]
    return known


def unknown_in(typed: list[str]) -> str:
    """What of a command does not exist; empty where all of it does."""
    known = known_commands()
    words = typed[: typed.index("--")] if "--" in typed else typed  # the rest is another's
    path = next((tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in known), None)
    if path is None:
        return f"no such command: ldfi {' '.join(words)}"
    options = {word.partition("=")[0] for word in words if word.startswith("--")}
    wrong = options - known[path] - {"--help"}
    return f"no such option: ldfi {' '.join(words)}: {wrong}" if wrong else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_people_are_told_to_type_exist(page: Path) -> None:
    assert [said for said in map(unknown_in, commands(page)) if said] == []
