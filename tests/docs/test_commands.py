"""What people are told to type: every `ldfi` is read by the command line's own parser, every `make`
has its target.

(That commands and options exist is held by ``test_site``; the README, the tutorial and the ten
minutes are typed from beginning to end by tests of their own.)
"""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest
import typer

from ldfi.cli import exits
from ldfi.cli.commands import Listed
from ldfi.cli.main import app
from tests.docs.test_site import PAGES, ROOT, commands, known_commands, unknown_in

README: Final = ROOT / "README.md"
EVERY: Final = sorted(
    {
        *PAGES,
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *ROOT.glob("examples/**/README.md"),
        *ROOT.glob("ldfi/*/README.md"),
        *ROOT.glob("ldfi/*/*/README.md"),
    }
)
MAKEFILE: Final = (ROOT / "Makefile").read_text("utf-8")
TARGETS: Final = frozenset(re.findall(r"^([a-z-]+):(?!=)", MAKEFILE, re.M))
MADE: Final = re.compile(r"^make ([a-z][^#\n]*)|`make ([a-z][^`]*)`", re.M)
EXTRA: Final = re.compile(r"ldfi\[([a-z,-]+)\]")
FENCED: Final = re.compile(r"^ *```.*?^ *```", re.M | re.S)
MENTIONED: Final = re.compile(r"`ldfi ([a-z][^`]*)`")
MISUSE: Final[type[Exception]] = typer.BadParameter.__mro__[1]
"""What the parser raises for all that it cannot take: a usage error of Click's."""


def parsed(words: Sequence[str]) -> None:
    """Read a command line to its end, and run nothing. Raises typer.BadParameter and the like."""
    command: Any = typer.main.get_command(app)
    context = command.make_context("ldfi", list(words))
    while hasattr(command, "resolve_command"):
        rest = [*getattr(context, "_protected_args", ()), *context.args]
        name, found, rest = command.resolve_command(context, rest)
        command = found.row.command() if isinstance(found, Listed) else found
        context = command.make_context(name, list(rest), parent=context)


TOLD: Final = [
    pytest.param(words, id=f"{page.relative_to(ROOT)}: {' '.join(words)}"[:80])
    for page in EVERY
    for words in commands(page)
]


@pytest.mark.parametrize("words", TOLD)
def test_the_command_line_can_read_it(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDFI_TOKEN", "somebody's")
    if "$@" in words:  # a script's own arguments, which only that knows
        return
    try:
        parsed(words)
    except typer.BadParameter as error:
        # Files are the reader's own
        if not error.message.endswith("does not exist."):
            raise
    except typer.Exit as ended:
        assert ended.exit_code == exits.FINE  # --help and --version


@pytest.mark.parametrize(
    "words",
    [
        "findigs",
        "findings list --mine",
        "findings show",
        "export curl ID --format",
        "findings list --limit few",
    ],
)
def test_what_it_cannot_read_is_noticed(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the test above would be worth nothing."""
    monkeypatch.setenv("LDFI_TOKEN", "somebody's")
    with pytest.raises(MISUSE):
        parsed(words.split())


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_mentioned_between_the_lines_exists(page: Path) -> None:
    groups = {path[0] for path in known_commands()}
    wrong = []
    for found in MENTIONED.findall(FENCED.sub("", page.read_text("utf-8"))):
        typed = found.split()
        whole_group = typed[0] in groups and typed[1:2] in ([], ["…"])
        if not whole_group:
            wrong.append(unknown_in(typed))
    assert [said for said in wrong if said] == []


ROOMS: Final = (
    *("analysis", "checker", "cli", "dashboards", "demo", "experiments", "explore", "fit"),
    *("lineage", "scenarios", "solver", "testing"),
)
SAID: Final = re.compile(r"(?<!`)`ldfi ([a-z][^`]*)`(?!`)")
AS_CODE: Final = re.compile(r"<code>ldfi ([a-z][^<{]*)</code>")


def texts(module: Path) -> Iterator[str]:
    """Yield what a module says: its docstrings and messages, ``ID`` for what it fills in."""
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        parts: Sequence[ast.AST] = node.values if isinstance(node, ast.JoinedStr) else [node]
        said = [each.value if isinstance(each, ast.Constant) else "ID" for each in parts]
        if isinstance(node, ast.JoinedStr | ast.Constant) and all(isinstance(e, str) for e in said):
            yield "".join(map(str, said))


def mentioned(room: str) -> set[str]:
    """The commands that helps, messages and pages of a room name."""
    modules, pages = (ROOT / room).rglob("*.py"), (ROOT / room).rglob("*.html")
    found = {said for each in modules for text in texts(each) for said in SAID.findall(text)}
    return found | {said for each in pages for said in AS_CODE.findall(each.read_text("utf-8"))}


def with_arguments(typed: Sequence[str]) -> bool:
    """Whether more is said than a command's name and its options, so that it can be typed."""
    path = next(n for n in (3, 2, 1, 0) if tuple(typed[:n]) in {(), *known_commands()})
    said = pairwise(["", *typed[path:]])
    return any(not (before.startswith("-") or word.startswith("-")) for before, word in said)


@pytest.mark.parametrize("room", ROOMS)
def test_what_helps_messages_and_pages_name_exists_and_can_be_typed(
    room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDFI_TOKEN", "somebody's")
    groups = {path[0] for path in known_commands()}
    wrong = []
    for command in sorted(mentioned(room)):
        typed = command.split()
        if typed[0] in groups and len(typed) == 1:
            continue
        wrong.append(unknown_in(typed))
        if not wrong[-1] and with_arguments(typed):
            try:
                parsed(shlex.split(command))
            except MISUSE as error:
                wrong.append(f"{command}: {error}")
    assert [each for each in wrong if each] == []


@pytest.mark.parametrize("page", EVERY, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_has_its_target_and_every_extra_is_one(page: Path) -> None:
    text = page.read_text("utf-8")
    for found in MADE.finditer(text):
        target, *given = (found[1] or found[2]).split()
        assert target in TARGETS, f"no such target: make {target}"
        names = [word.partition("=")[0] for word in given if re.match(r"[A-Z]+=", word)]
        assert [name for name in names if not re.search(rf"\b{name}\b", MAKEFILE)] == []
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    asked = {name for each in EXTRA.findall(text) for name in each.split(",")}
    assert asked <= set(extras["optional-dependencies"])


def test_make_knows_how_to_make_what_the_readme_says() -> None:
    make = shutil.which("make") or "make"
    for found in MADE.finditer(README.read_text("utf-8")):
        words = (found[1] or found[2]).split()
        done = subprocess.run(
            [make, "--dry-run", *words], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (words, done.stderr)
