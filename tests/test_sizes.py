"""Classes and functions stay small enough to be read at once.

Outside of migrations and generated code. Of a command of the command line only the body counts: its
signature is the documentation of its options. A test class may have as many tests as it takes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = (
    "fit",
    "lineage",
    "solver",
    "checker",
    "analysis",
    "scenarios",
    "explore",
    "experiments",
    "cli",
    "dashboards",
    "demo",
    "testing",
    "benchmarks",
    "deploy",
    "soak",
    "docs",
    "examples",
    "tests",
)
CLASS_LINES, CLASS_METHODS, FUNCTION_LINES = 400, 20, 60
GENERATED = ("migrations", "node_modules", "build")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def too_large(source: str, *, tests: bool = False) -> Iterator[str]:
    """What of a module's source is too large, in words."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield from _too_large_class(node, tests=tests)
        elif isinstance(node, Function) and _lines(node) > FUNCTION_LINES:
            yield f"function {node.name} has {_lines(node)} lines, at most {FUNCTION_LINES}"


def _too_large_class(node: ast.ClassDef, *, tests: bool) -> Iterator[str]:
    lines = _length(node.lineno, node)
    if lines > CLASS_LINES:
        yield f"class {node.name} has {lines} lines, at most {CLASS_LINES}"
    names = {each.name for each in node.body if isinstance(each, Function)}
    public = [name for name in names if not name.startswith("_")]
    if len(public) > CLASS_METHODS and not tests:
        yield f"class {node.name} has {len(public)} public methods, at most {CLASS_METHODS}"


def _lines(function: Function) -> int:
    first = function.body[0].lineno if _is_command(function) else function.lineno
    return _length(first, function)


def _length(first: int, node: Function | ast.ClassDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - first + 1


def _is_command(function: Function) -> bool:
    """Whether it has options of the command line in its signature."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    annotations = (each.annotation for each in arguments if each.annotation is not None)
    return any("typer." in ast.unparse(annotation) for annotation in annotations)


def modules() -> Iterator[Path]:
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if not {*GENERATED} & {*path.relative_to(ROOT).parts}:
                yield path


def test_nothing_is_too_large() -> None:
    found = []
    for path in sorted(modules()):
        name = path.relative_to(ROOT).as_posix()
        source = path.read_text(encoding="utf-8")
        found += [f"{name}: {each}" for each in too_large(source, tests=name.startswith("tests/"))]
    assert not found, "\n".join(found)


def test_every_room_is_looked_at() -> None:
    here = {path.parents[0].name for path in ROOT.glob("[!.]*/*.py")} | {"deploy", "tests"}
    assert here - {"ldfi"} <= set(ROOMS)
    assert len(list(modules())) > 500


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_may_have_sixty_lines(kind: str) -> None:
    fits = f"{kind} f() -> None:\n" + "    pass\n" * 59
    assert not list(too_large(fits))
    assert list(too_large(fits + "    pass\n")) == ["function f has 61 lines, at most 60"]


def test_of_a_command_only_the_body_counts() -> None:
    options = "".join(
        f"    o{n}: Annotated[str, typer.Option(help='x')] = '',\n" for n in range(80)
    )
    fits = f"def f(\n{options}) -> None:\n" + "    pass\n" * 60
    assert not list(too_large(fits))
    assert list(too_large(fits + "    pass\n")) == ["function f has 61 lines, at most 60"]
    assert list(too_large(fits.replace("typer.", "other.")))


def test_a_class_may_have_four_hundred_lines_and_twenty_public_methods() -> None:
    fits = "class C:\n" + "    x = 1\n" * 399
    assert not list(too_large(fits))
    assert list(too_large(fits + "    x = 1\n")) == ["class C has 401 lines, at most 400"]
    methods = [f"    def m{n}(self) -> None: ...\n" for n in range(20)]
    private = "    def _p(self) -> None: ...\n    def __len__(self) -> int: ...\n"
    assert not list(too_large("class C:\n" + "".join(methods) + private))
    larger = "class C:\n" + "".join(methods) + "    def n(self) -> None: ...\n"
    assert list(too_large(larger)) == ["class C has 21 public methods, at most 20"]
    assert not list(too_large(larger, tests=True))
