"""Each word has one definition: a public class or choice of a name stands in one module only."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
