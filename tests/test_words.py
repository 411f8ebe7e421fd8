"""Each word has one definition, words that are gone stay gone, and first lines say what is done.

A public class or choice of a name stands in one module only. Names are read token by token and
taken apart into words (``GlobalControls``: global, controls), so that a word is found wherever it
is part of a name; ``LEFT`` says where it may stand, and why.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = (
    "experiments",
    "fit",
    "lineage",
    "checker",
    "solver",
    "analysis",
    "scenarios",
    "explore",
)

SHARED: Final = {
    "Arm": "a scenario's document: its name is part of the published schema",
    "Call": "a scenario's document; a call in a trace",
    "RequestClass": "a scenario's document; a class as it is learned",
    "Seen": "a scenario's document; what a worker has seen, in the worker's module only",
    "Bounds": "of a campaign, as the API's schema names it; of a test, as its marker says them",
    "Armed": "the process under a test; an experiment the store let be armed",
    "Run": "of a campaign, by its schedule; of a test",
    "Service": "our own; as the place that spans come from, beside Jaeger and a listener",
    "Stream": "messages; events to a browser; events as the command line reads them",
    "Event": "one that happened, as it is read; the kinds people can be told of",
}
"""What has two definitions all the same, and which: each is clear from the room it stands in."""


def _words(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and _is_choice(node.value):
            yield from (each.id for each in node.targets if isinstance(each, ast.Name))


def _is_choice(value: ast.expr) -> bool:
    """Whether it is ``Literal[...]``, alone or beside others."""
    if isinstance(value, ast.BinOp):
        return _is_choice(value.left) or _is_choice(value.right)
    return (
        isinstance(value, ast.Subscript)
        and isinstance(value.value, ast.Name)
        and value.value.id == "Literal"
    )


def _defined() -> dict[str, list[str]]:
    found = defaultdict(list)
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            for word in _words(ast.parse(file.read_text(encoding="utf-8"))):
                if not word.startswith("_"):
                    found[word].append(str(file.relative_to(ROOT)))
    return found


def test_each_word_has_one_definition() -> None:
    twice = {word: files for word, files in _defined().items() if len(files) > 1}

    new = {word: files for word, files in twice.items() if word not in SHARED}
    assert not new, f"name one of them differently: {new}"
    assert set(SHARED) <= set(twice), "no longer defined twice: take it off the list"


def test_the_glossarys_words_are_found() -> None:
    found = _defined()
    for word in ("Verdict", "GateVerdict", "ExperimentState", "ResultPurpose", "Settings"):
        assert len(found[word]) == 1, word


GONE: Final = {
    "balance": "snapshot",
    "besides": "what it is: under_way, extra, skip",
    "clue": "hint",
    "convicts": "confirming_purpose",
    "fold": "solver_input, compact, merge",
    "grounds": "evidence_quality",
    "lesson": "result",
    "lot": "draw_key",
    "passage": "what it is: inject, ProxiedRun",
    "posted": "armed_rule",
    "spells": "baseline",
    "stood": "stored",
    "strike": "effect",
    "surroundings": "class_context",
    "weather": "noise",
}
"""Each word that is gone from names, in the singular, and what is said instead."""

LEFT: Final = {
    ("lesson", "experiments/store/"): "a column of the table of experiments",
    ("lesson", "experiments/scheduler/"): "that column",
    ("lesson", "experiments/queries/"): "that column",
    ("lesson", "dashboards/"): "that column",
    ("lesson", "soak/"): "that column",
    ("lesson", "experiments/cluster/config.py"): "the setting keep_lessons_days",
    ("lesson", "cli/prune.py"): "that setting",
    ("lesson", "cli/explore.py"): "the option --lessons",
    ("fold", "dashboards/"): "a part of a page that opens; datetime's own word",
    ("fold", "experiments/domain/campaign/local_time.py"): "datetime's own word",
    ("fold", "experiments/domain/campaign/windows.py"): "datetime's own word",
    ("posted", "cli/"): "what was sent by HTTP's POST",
}
"""Where a word stands all the same, under this path: names on the wire, columns, others' words."""

EVERYWHERE: Final = (*ROOMS, "benchmarks", "cli", "dashboards", "deploy", "soak", "testing")

_ANY: Final = re.compile("|".join(GONE), re.IGNORECASE)


def _parts(name: str) -> list[str]:
    """Take a name apart into its words: ``_HaltSwitch``, ``halt_switch``: halt, switch."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_")


@cache
def _files() -> dict[str, str]:
    """Return the text of every module, by its path; migrations stay as they were applied."""
    found = (file for room in EVERYWHERE for file in sorted((ROOT / room).rglob("*.py")))
    return {
        str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
        for file in found
        if not {"node_modules", "migrations"} & {*file.parts}
    }


@cache
def _names(text: str) -> list[tuple[int, str]]:
    """Return the names in a module that hold a gone word, each with its line."""
    return [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME and _ANY.search(token.string)
    ]


@pytest.mark.parametrize("gone", GONE)
def test_gone_words_are_in_no_name(gone: str) -> None:
    forms = {gone, f"{gone}s"}
    left = [path for word, path in LEFT if word == gone]
    found = [
        f"{file}:{line}: {name}"
        for file, text in _files().items()
        if gone in text.lower() and not any(file.startswith(path) for path in left)
        for line, name in _names(text)
        if forms & {*_parts(name)}
    ]
    assert not found, f"say {GONE[gone]}: {found}"


def test_what_is_left_is_still_there() -> None:
    for gone, path in LEFT:
        texts = (text for file, text in _files().items() if file.startswith(path))
        names = {name for text in texts if gone in text for _, name in _names(text)}
        assert any({gone, f"{gone}s"} & {*_parts(name)} for name in names), f"take off {gone, path}"


RIDDLE: Final = re.compile(
    r"(What|Whoever|Whatever|That which|Of which|Of what|All of it|All that|Whether|How many|Those|"
    r"Nothing|Nobody|So often|Where|When|Which|Who)\b"
)
"""How a first line begins that leaves it to be guessed what a function returns or does."""

FACES: Final = ("cli/", "dashboards/")


def test_first_lines_say_what_is_returned_or_done() -> None:
    riddles = [
        f"{file}:{node.lineno}: {node.name}: {told.splitlines()[0]}"
        for file, text in _files().items()
        if re.search(rf'\n +r?"""{RIDDLE.pattern}', text) and not file.startswith(FACES)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (told := ast.get_docstring(node))
        and RIDDLE.match(told)
    ]
    assert not riddles, f"begin with a verb: {riddles}"


UNSAID: Final = re.compile(
    r"\b(lessons?|surroundings|convicts|by lot|clues?|weather|grounds|balances?|passage|strikes)\b",
    re.IGNORECASE,
)
"""What docstrings say no more, beside names: result, class context, at random, hint, noise."""


def _docstrings(text: str) -> Iterator[tuple[int, str]]:
    """Yield what stands as a docstring, below a name as well, with its line."""
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        for each in body if isinstance(body, list) else ():
            match each:
                case ast.Expr(value=ast.Constant(value=str(told))):
                    yield each.lineno, told


def test_gone_words_are_in_no_docstring() -> None:
    found = [
        f"{file}:{line}: {told[:80]!r}"
        for file, text in _files().items()
        if UNSAID.search(text)
        for line, told in _docstrings(text)
        if UNSAID.search(told)
    ]
    assert not found, found
