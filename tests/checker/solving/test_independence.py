"""The check shares nothing with the solver whose work it checks."""

from __future__ import annotations

import ast
from pathlib import Path

import ldfi.checker.solving


def test_the_check_imports_nothing_of_the_solver() -> None:
    for module in Path(ldfi.checker.solving.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            imported = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                imported = [each.name for each in node.names]
            ours = [each for each in imported if each.startswith("ldfi")]
            assert all(each.startswith("ldfi.checker.solving.") for each in ours), module.name
