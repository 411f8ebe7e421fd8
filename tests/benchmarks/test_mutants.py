"""Mutants are what they are said to be, and a test that sees one is found."""

from __future__ import annotations

import py_compile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.mutants import (
    File,
    Killed,
    Recorded,
    Trial,
    candidates,
    covering,
    planted,
    report,
    room_of,
    tried,
)
from benchmarks.mutations import Mutant, drawn, mutations

MODULES = sorted(Path(__file__).parents[2].glob("ldfi/checker/*.py"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a < b", ["a <= b"]),
        ("a >= b", ["a > b"]),
        ("(a) == (b)", ["(a) != (b)"]),
        ("a is not b", ["a is b"]),
        ("a not in b", ["a in b"]),
        ("é == 1 and c", ["é == 1 or c", "é != 1 and c", "é == 2 and c"]),
        ("a or b or c", ["a and b or c"]),
        ("not (a or b)", ["(a or b)", "not (a and b)"]),
        ("x = 0.5, True, 'one'", ["x = 1.5, True, 'one'"]),
        ("if a:\n    b()", ["if False:\n    b()"]),
        ("if TYPE_CHECKING:\n    b()", []),
        ("async def f():\n    return await (g())", ["async def f():\n    return (g())"]),
        ("def f() -> int | None:\n    return a", ["def f() -> int | None:\n    return None"]),
        ("def f() -> Callable[[], None]:\n    return a", []),
        ("x: Literal[1] = f'{1 < a}'", []),
    ],
)
def test_each_operator_changes_what_it_says(before: str, after: list[str]) -> None:
    assert [each.applied(before) for each in mutations(before)] == after


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_mutants_of_real_modules_compile_and_differ_in_one_line(module: Path) -> None:
    source = module.read_text()
    for each in mutations(source):
        mutated = each.applied(source)
        compile(mutated, str(module), "exec", dont_inherit=True)
        before, after = each.shown(source)
        assert before != after


def test_a_draw_is_by_its_seed_and_takes_as_many_from_each_room() -> None:
    found = [
        Mutant(room, module.name, each)
        for room in ("proof", "solver", "fit")
        for module in MODULES
        for each in mutations(module.read_text())
    ]
    taken = drawn(found, 20, seed=1)
    assert taken == drawn(found[::-1], 20, seed=1) != drawn(found, 20, seed=2)
    assert Counter(each.room for each in taken) == {"fit": 7, "proof": 7, "solver": 6}
    assert len({each.mutation.operator for each in taken}) > 4


def test_a_module_is_of_the_innermost_room_around_it() -> None:
    assert room_of("experiments/domain/settings.py") == "domain"
    assert room_of("experiments/notify/slack.py") == "experiments"
    assert room_of("testing/world.py") == "demo"
    assert room_of("docs/generate.py") is None


def test_a_mutant_is_killed_by_a_test_that_passes_without_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a module, a test of it, and one that always fails
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take seconds to import
    (tmp_path / "solver").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "solver/__init__.py").touch()
    (tmp_path / "solver/least.py").write_text("def least(a, b):\n    return a if a < b else b\n")
    (tmp_path / "tests/test_least.py").write_text(
        "from solver.least import least\n"
        "def test_broken(): raise ValueError\n"
        "def test_least(): assert least(1, 2) == 1\n"
    )
    file = File("tests/test_least.py", "")
    recorded = [Recorded(file, False, 1.0, {"solver/least.py": 0b110})]
    (turned,) = candidates(tmp_path, tmp_path, recorded)
    other = replace(turned, mutation=replace(turned.mutation, text=">"))
    # When a mutant that no test tells apart is tried, and one that is plainly wrong
    files = covering(recorded, turned)
    trial = Trial(other, files, files, (file.path,), ("", ""), seconds=60.0)
    trials = replace(trial, mutant=turned), trial
    results = [tried(tmp_path, tmp_path, each) for each in trials]
    # Then the first is killed by none, and counts for nothing
    assert [each.base for each in results] == ["", "tests/test_least.py::test_least"]
    tables, targets = report(tmp_path, results)
    assert [list(row.values()) for row in tables["rooms"]] == [
        ["solver", 2, 1, 1, 1],
        ["all", 2, 1, 1, 1],
    ]
    assert all(each["met"] for each in targets.values())
    # And what the working tree has no test for any more is killed by the base alone
    lost = tried(tmp_path, tmp_path, replace(trial, now=(), whole=()))
    assert (lost.test, lost.servers, lost.base) == ("", "", "tests/test_least.py::test_least")


def test_a_copy_has_the_mutant_and_inherits_neither_what_failed_nor_what_was_compiled(
    tmp_path: Path,
) -> None:
    (tmp_path / ".pytest_cache").mkdir()
    (tmp_path / "least.py").write_text("a = 1\n")
    py_compile.compile(str(tmp_path / "least.py"))
    (only,) = mutations("a = 1\n")
    with planted(tmp_path, Mutant("solver", "least.py", only)) as copy:
        assert {each.name for each in copy.iterdir()} == {"least.py", "__pycache__"}
        assert list((copy / "__pycache__").iterdir()) == []
        assert (copy / "least.py").read_text() == "a = 2\n"


def test_what_only_the_base_kills_is_listed_line_for_line(tmp_path: Path) -> None:
    (tmp_path / "solver").mkdir()
    (tmp_path / "solver/least.py").write_text("a = 1\n")
    (only,) = mutations("a = 1\n")
    mutant = Mutant("solver", "solver/least.py", only)
    killed = Killed(mutant, test="", servers="", base="tests/test_least.py::test_least")
    tables, targets = report(tmp_path, [killed])
    (row,) = tables["survivors"]
    assert list(row.values())[:3] == ["solver/least.py:1", "a = 1", "a = 2"]
    assert not any(each["met"] for each in targets.values())
