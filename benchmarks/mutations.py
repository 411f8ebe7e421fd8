"""Mutations of Python source: small faults, each planted by replacing the text of one syntax node.

The rest of a file stays as it is. F-strings and annotations are left alone: before Python 3.12 the
nodes of an f-string do not know where they stand, and annotations are not run.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

TURNED: Mapping[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: (r"is\s+not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}
UNMUTATED = ("__name__", "TYPE_CHECKING")
"""Names whose comparisons and branches are left alone: no test could tell, or every test would."""


@dataclass(frozen=True)
class Mutation:
    """A replacement of the bytes from ``start`` to ``end`` of a source in UTF-8."""

    operator: str
    line: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """Return the source with the mutation in it."""
        data = source.encode()
        return (data[: self.start] + self.text.encode() + data[self.end :]).decode()

    def shown(self, source: str) -> tuple[str, str]:
        """Return the line of the mutation before and after, without the space around it."""
        at = self.line - 1
        after = self.applied(source).split("\n")[at]
        return source.split("\n")[at].strip(), after.strip()


@dataclass(frozen=True)
class Mutant:
    """A mutation of a module, which belongs to a room."""

    room: str
    module: str
    mutation: Mutation


class _Source:
    """A source and where its nodes stand in it, in bytes."""

    def __init__(self, source: str) -> None:
        self.data = source.encode()
        self._begins = [0]
        for line in self.data.split(b"\n"):
            self._begins.append(self._begins[-1] + len(line) + 1)

    def start(self, node: ast.expr | ast.stmt) -> int:
        return self._begins[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        return self._begins[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)

    def replaced(self, operator: str, node: ast.expr | ast.stmt, text: str) -> Mutation:
        return Mutation(operator, node.lineno, self.start(node), self.end(node), text)

    def without(self, word: str, node: ast.expr) -> Mutation:
        """Drop the keyword that a node begins with; what it holds stays, parentheses included."""
        start = self.start(node)
        rest = self.data[start + len(word) : self.end(node)]
        end = start + len(word) + len(rest) - len(rest.lstrip())
        return Mutation(f"{word} dropped", node.lineno, start, end, "")

    def between(
        self, operator: str, left: ast.expr, right: ast.expr, pattern: str, text: str
    ) -> Iterator[Mutation]:
        """Replace the operator that stands between two operands."""
        begin = self.end(left)
        for found in re.finditer(pattern.encode(), self.data[begin : self.start(right)]):
            start = begin + found.start()
            line = self.data.count(b"\n", 0, start) + 1
            yield Mutation(operator, line, start, begin + found.end(), text)
            return


def mutations(source: str) -> list[Mutation]:
    """Return every mutation of a source, in the order of its syntax tree."""
    text = _Source(source)
    return [each for node, typed in _nodes(ast.parse(source)) for each in _of(node, typed, text)]


def _nodes(node: ast.AST, optional: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Walk what is run; beside each node, whether the function around it may return None."""
    yield node, optional
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        optional = _allows_none(node.returns)
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                yield from _nodes(child, optional)


def _allows_none(note: ast.expr | None) -> bool:
    """Return whether an annotation is a union with None."""
    if not isinstance(note, ast.BinOp):
        return False
    sides = (note.left, note.right)
    return any(_is_none(side) or _allows_none(side) for side in sides)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _of(node: ast.AST, optional: bool, text: _Source) -> Iterator[Mutation]:
    match node:
        case ast.Compare(left=left, ops=[op, *_], comparators=[right, *_]) if _wanted(node):
            yield from text.between("comparison turned", left, right, *TURNED[type(op)])
        case ast.BoolOp(op=op, values=[left, right, *_]):
            old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            yield from text.between("and/or swapped", left, right, rf"\b{old}\b", new)
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            yield text.replaced("constant moved", node, repr(value + 1))
        case ast.If(test=test) if _wanted(test):
            yield text.replaced("branch dropped", test, "False")
        case ast.Await():
            yield text.without("await", node)
        case ast.UnaryOp(op=ast.Not()):
            yield text.without("not", node)
        case ast.Return(value=ast.expr() as value) if optional and not _is_none(value):
            yield text.replaced("None returned", node, "return None")


def _wanted(test: ast.expr) -> bool:
    """Return whether a condition binds no name, and asks for none of those that are left alone."""
    nodes = list(ast.walk(test))
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    return named.isdisjoint(UNMUTATED) and not any(isinstance(n, ast.NamedExpr) for n in nodes)


def drawn(candidates: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """Draw so many mutants, the same number from each room, from each operator in turn.

    Each candidate has a random number of its own: where others come or go, the draw stays nearly
    the same.
    """
    rooms: dict[str, dict[str, list[Mutant]]] = defaultdict(lambda: defaultdict(list))
    for each in sorted(candidates, key=lambda mutant: _draw(seed, mutant)):
        rooms[each.room][each.mutation.operator].append(each)
    found: list[Mutant] = []
    for at, (_, operators) in enumerate(sorted(rooms.items())):
        quota = count // len(rooms) + (at < count % len(rooms))
        turns = zip_longest(*operators.values())
        found += [each for turn in turns for each in turn if each][:quota]
    return found


def _draw(seed: int, mutant: Mutant) -> float:
    return random.Random(f"{seed} {mutant}").random()
